"""Whatever the source and the break: no exception, and nothing that is not Python."""

from __future__ import annotations

import ast
from pathlib import Path

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from representative import every

from pyrometer.advice import Advice
from pyrometer.compiler.advice.advise import with_advice
from pyrometer.compiler.advice.apply import apply_rewrite
from pyrometer.compiler.advice.registry import advised_ids
from pyrometer.compiler.breaks.record import Break
from pyrometer.errors import InputError

IDS = sorted(advised_ids())

EXPRESSIONS = st.recursive(
    st.sampled_from(["x", "y", "self.w", "1", "0.5", "n", "'text'", "None"]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "*", "/", ">", "and", "**"]), inner),
        st.builds("{}.sum()".format, inner),
        st.builds("({}).item()".format, inner),
        st.builds("float({})".format, inner),
        st.builds("x[{}]".format, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("torch.relu({})".format, inner),
        st.builds("random.random() * {}".format, inner),
        st.builds("[{} for y in x]".format, inner),
        st.builds("not {}".format, inner),
    ),
    max_leaves=5,
)
STATEMENTS = st.one_of(
    st.builds("y = {}".format, EXPRESSIONS),
    st.builds("y += {}".format, EXPRESSIONS),
    st.builds("return {}".format, EXPRESSIONS),
    st.builds("print({})".format, EXPRESSIONS),
    st.builds("assert {}, 'é'".format, EXPRESSIONS),
    st.builds("if {}: y = {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds(
        "if {}:\n        y = {}\n    else:\n        y = {}".format, EXPRESSIONS, EXPRESSIONS, EXPRESSIONS
    ),
    st.builds("while {}:\n        y = {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("for i in range({}):\n        y = {}".format, EXPRESSIONS, EXPRESSIONS),
    st.builds("with torch.profiler.profile():\n        y = {}".format, EXPRESSIONS),
    st.builds("try:\n        y = {}\n    finally:\n        n = 1".format, EXPRESSIONS),
    st.builds("match {}:\n        case 1:\n            y = {}".format, EXPRESSIONS, EXPRESSIONS),
)


@given(body=st.lists(STATEMENTS, min_size=1, max_size=4), gb_id=st.sampled_from(IDS), data=st.data())
def test_rewrites_of_python_are_python(
    body: list[str], gb_id: str, data: st.DataObject, tmp_path: Path
) -> None:
    text = "import random\nimport torch\n\n\ndef f(x: torch.Tensor, n, self):\n" + "".join(
        f"    {each}\n" for each in body
    )
    lines = text.split("\n")
    line = data.draw(st.integers(1, len(lines)))
    for rewrite in _advice(text, gb_id, line, tmp_path):
        if rewrite.replaces:
            ast.parse(rewrite.rewrite)
            after = apply_rewrite(text, rewrite, line)
            assert after != text
            compile(after, "after.py", "exec")


@given(text=st.text(max_size=200), gb_id=st.sampled_from([*IDS, "gb9999", "", None]), line=st.integers(-2, 9))
def test_advice_on_text_that_is_no_python_never_raises(
    text: str, gb_id: str | None, line: int, tmp_path: Path
) -> None:
    _advice(text, gb_id, line, tmp_path)


@pytest.mark.parametrize("gb_id", every(2, ["gb0170", "gb0124", "gb0059", "gb0007", "gb0036"]))
def test_advice_on_every_line_of_a_real_file_is_python(gb_id: str) -> None:
    file = Path(torch.__file__).parent / "nn" / "modules" / "rnn.py"
    text = file.read_text()
    lines = text.split("\n")
    for line in range(1, len(lines), 31):
        source = lines[line - 1].strip()
        graph_break = Break(id=gb_id, reason="", file=str(file), line=line, source=source)
        for rewrite in with_advice([graph_break])[0].advice:
            if rewrite.replaces:
                compile(apply_rewrite(text, rewrite, line), "after.py", "exec")


def test_a_rewrite_without_text_is_refused_with_its_setting() -> None:
    rewrite = Advice(
        slug="switch",
        title="switch",
        why="",
        rewrite="torch._dynamo.config.allow_rnn = True",
        fix_class="exact",
    )
    with pytest.raises(InputError, match="allow_rnn"):
        apply_rewrite("x = 1\n", rewrite, 1)


def test_a_rewrite_of_other_text_is_refused() -> None:
    with pytest.raises(InputError, match="changed since"):
        apply_rewrite(
            "x = 1\n",
            Advice(slug="a", title="", why="", replaces="y = 1", rewrite="y = 2", fix_class="exact"),
            1,
        )


def test_of_several_places_the_one_at_the_line_is_rewritten() -> None:
    text = "if a:\n    x = 1\nif b:\n\tx = 1\n"
    rewrite = Advice(slug="a", title="", why="", replaces="x = 1", rewrite="x = 2\nz = 3", fix_class="exact")
    assert apply_rewrite(text, rewrite, 4) == "if a:\n    x = 1\nif b:\n\tx = 2\n\tz = 3\n"
    assert apply_rewrite(text, rewrite, 2).startswith("if a:\n    x = 2\n    z = 3\n")


def _advice(text: str, gb_id: str | None, line: int, folder: Path) -> list[Advice]:
    file = folder / "odd.py"
    file.write_bytes(text.encode(errors="replace"))
    lines = text.split("\n")
    source = lines[line - 1].strip() if 0 < line <= len(lines) else text
    import linecache

    linecache.checkcache(str(file))
    linecache.cache.pop(str(file), None)
    graph_break = Break(id=gb_id, reason="", file=str(file), line=line, source=source)
    return with_advice([graph_break])[0].advice
