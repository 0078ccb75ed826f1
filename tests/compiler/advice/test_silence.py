"""Code that no rewrite is certain for: words or settings, and no changed code."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pyrometer.advice import Advice
from pyrometer.compiler.advice.advise import with_advice
from pyrometer.compiler.advice.registry import advised_ids, kinds
from pyrometer.compiler.breaks.record import Break
from pyrometer.compiler.private import break_registry

HEAD = "import copy\nimport math\nimport random\nimport time\nimport torch\nimport numpy as np\n\na = [1, 2]\n\n\n"

CASES = {
    "other shapes": ("gb0170", "if x.sum() > 0:  # HERE\n    y = 1.0\nelse:\n    y = x\nreturn y"),
    "a side with an effect": (
        "gb0170",
        "if x.sum() > 0:  # HERE\n    self.count(x)\nelse:\n    y = x\nreturn x",
    ),
    "assigned in place on an argument": ("gb0170", "if x.sum() > 0:  # HERE\n    x += 1\nreturn x"),
    "assigned in place on what a view shows": (
        "gb0170",
        "y = x * 2\nz = y.view(-1)\nif x.sum() > 0:  # HERE\n    y += 1\nreturn z",
    ),
    "in-place method": ("gb0170", "y = x * 2\nif x.sum() > 0:  # HERE\n    y = y.add_(1)\nreturn y"),
    "bound on one side only": ("gb0170", "if x.sum() > 0:  # HERE\n    z = x * 2\nreturn x"),
    "python on one side of and": ("gb0170", "if ready and x.sum() > 0:  # HERE\n    x = x * 2\nreturn x"),
    "an elif": ("gb0170", "if ready:\n    x = x * 2\nelif x.sum() > 0:  # HERE\n    x = x * 3\nreturn x"),
    "a number that becomes a tensor": (
        "gb0170",
        "s = 1.0\nif x.sum() > 0:  # HERE\n    s = s * 2\nreturn x.clamp(max=s)",
    ),
    "a chain of tests": ("gb0170", "if 0 < x.sum() < 3:  # HERE\n    x = x * 2\nreturn x"),
    "a choice of modules": ("gb0170", "g = self.a if x.sum() > 0 else self.b  # HERE\nreturn g(x)"),
    "a choice of counts": ("gb0170", "if x.sum() > 0:  # HERE\n    k = k + 1\nreturn x[:k]"),
    "sides of other shapes": (
        "gb0170",
        "if x.sum() > 0:  # HERE\n    y = x * 2\nelse:\n    y = x.sum() * 2\nreturn y",
    ),
    "sides of other ranks": (
        "gb0170",
        "if x.sum() > 0:  # HERE\n    return x * 2\nelse:\n    return x.unsqueeze(0) * 3",
    ),
    "sides of other dtypes": (
        "gb0170",
        "if x.sum() > 0:  # HERE\n    y = (x * 3).to(torch.int64)\nelse:\n    y = x * 2.5\nreturn y",
    ),
    "integers that become floating": ("gb0170", "if x.sum() > 0:  # HERE\n    x = x.exp()\nreturn x"),
    "a side that is broadcast": ("gb0170", "b = x[:1]\nif x.sum() > 0:  # HERE\n    b = x * 2\nreturn b * 3"),
    "a side from a module": ("gb0170", "if x.sum() > 0:  # HERE\n    x = self.layer(x)\nreturn x"),
    "an exception that is caught": (
        "gb0170",
        "try:\n    if x.sum() > 0:  # HERE\n        raise ValueError('no')\nexcept ValueError:\n    x = x * 2\nreturn x",
    ),
    "a number beside a slice": ("gb0124", "y = x[:n] * float(k)  # HERE\nreturn y + x.sum()"),
    "a class that keeps state": (
        "gb8977",
        "class Count:  # HERE\n    n = 0\nCount.n += 1\nreturn x * Count.n",
    ),
    "a class that reads an argument": ("gb8977", "class Scale:  # HERE\n    n = k\nreturn x * Scale.n"),
    "an argument that hides a table": ("gb0124", "return x.sum() * a[k.item()]  # HERE"),
    "a test of identity": ("gb0170", "if x.grad is x.sum():  # HERE\n    x = x * 2\nreturn x"),
    "other order": (
        "gb0170",
        "if x.sum() > 0:  # HERE\n    a = x * 2\n    b = a - 1\nelse:\n    b = x * 2\n    a = b - 1\nreturn a",
    ),
    "global name": (
        "gb0170",
        "global y\nif x.sum() > 0:  # HERE\n    y = x * 2\nelse:\n    y = x * 3\nreturn y",
    ),
    "python function in a test": ("gb0007", "if math.isfinite(k):  # HERE\n    x = x * 2\nreturn x"),
    "torch.equal": ("gb0033", "if torch.equal(x, y):  # HERE\n    x = x * 2\nreturn x"),
    "assertion with a computed text": ("gb0170", "assert x.sum() > 0, f'{k}'  # HERE\nreturn x"),
    "raise with more than a text": (
        "gb0170",
        "if x.sum() > 0:  # HERE\n    raise ValueError('a', k)\nreturn x",
    ),
    "returned number": ("gb0124", "s = x.sum().item()  # HERE\nreturn s"),
    "stored number": ("gb0124", "self.last = x.sum().item()  # HERE\nreturn x"),
    "number in a list": ("gb0124", "s = x.sum().item()  # HERE\nreturn [s, x]"),
    "number as a size": ("gb0124", "n = x.sum().item()  # HERE\nreturn torch.zeros(n) + x.sum()"),
    "number times a list": ("gb0124", "n = x.sum().item()  # HERE\nreturn [0] * n"),
    "number in a test": ("gb0124", "s = x.sum().item()  # HERE\nif s > 0:\n    x = x * 2\nreturn x * s"),
    "number that another name shares": ("gb0124", "s = x.sum().item()  # HERE\nt = s\ns += 1\nreturn x * t"),
    "number for mathematics": ("gb0124", "s = math.sqrt(x.sum().item())  # HERE\nreturn x * s"),
    "which of two": ("gb0124", "y = a.item() * x.sum() + b.item()  # HERE\nreturn y"),
    "printed iterator": ("gb0059", "print(next(it))  # HERE\nreturn x"),
    "print to a file": ("gb0059", "print(x, file=things)  # HERE\nreturn x"),
    "print as an expression": ("gb0059", "y = print(x)  # HERE\nreturn x"),
    "a clock that is returned": ("gb0007", "t = time.time()  # HERE\nreturn x, t"),
    "mask of another tensor": ("gb0036", "return x[m > 0].sum()  # HERE"),
    "mask with broadcast values": ("gb0036", "return x[x > y].sum()  # HERE"),
    "reduction along a dimension": ("gb0036", "return x[x > 0].sum(0)  # HERE"),
    "count that is a size": ("gb0036", "return torch.zeros(len(x[x > 0]))  # HERE"),
    "masked tensor itself": ("gb0036", "return x[x > 0]  # HERE"),
    "draw as a number": ("gb0007", "k = random.random()  # HERE\nreturn k"),
    "draw of something else": ("gb0007", "k = random.choice(things)  # HERE\nreturn x.sum() * k"),
    "table that changes": ("gb0124", "t = [1, 2]\nt.append(k)\nreturn x.sum() * t[k.item()]  # HERE"),
    "table of two kinds": ("gb0124", "t = [1, 2.5]\nreturn x.sum() * t[k.item()]  # HERE"),
    "dictionary with gaps": ("gb0124", "t = {0: 1, 2: 2}\nreturn x.sum() * t[k.item()]  # HERE"),
    "picked module": ("gb0124", "return self.layers[k.item()](x)  # HERE"),
    "copy of anything": ("gb4198", "y = copy.deepcopy(things)  # HERE\nreturn y"),
    "file": ("gb0059", "with open('x') as file:  # HERE\n    k = file.read()\nreturn x"),
    "lock": ("gb0142", "with lock:  # HERE\n    y = x * 2\nreturn y"),
    "while with an effect": ("gb0170", "while x.sum() > 0:  # HERE\n    x = x - 1\n    log(x)\nreturn x"),
    "while that breaks": ("gb0170", "while x.sum() > 0:  # HERE\n    x = x - 1\n    break\nreturn x"),
    "several statements on a line": ("gb0170", "y = x; z = x * 2 if x.sum() > 0 else x  # HERE\nreturn z"),
    "text over several lines": ("gb0059", 'print("""a\n  b""", x)\nreturn x  # HERE'),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_code_is_rewritten_where_the_outcome_is_not_certain(case: tuple[str, str], tmp_path: Path) -> None:
    assert not [advice for advice in _advice(tmp_path, *case) if advice.replaces]


OPEN = {
    "arithmetic": "n = int(x.sum())  # HERE\nreturn x * n",
    "a result": "n = x.sum().item()  # HERE\nreturn x * 2, n",
    "an index of a tensor": "i = x.argmax().item()  # HERE\nreturn x[i] + 1",
    "a remainder": "n = x.sum().item()  # HERE\nreturn x % n",
}
NEEDED = {
    "index of a list": "return x.sum() * ws[int(x.argmax()) % 3]  # HERE",
    "end of a slice": "n = int(x.argmax())  # HERE\nreturn x[:n] + 1",
    "key": "return x.sum() * table[int(x.sum())]  # HERE",
    "choice of a function": "return fs[int(x.argmax())](x)  # HERE",
    "rounds of a loop": "n = int(x.sum())  # HERE\nfor _ in range(n):\n    x = x + 1\nreturn x",
    "test": "s = x.sum().item()  # HERE\nif s > 3.0:\n    return x * 2\nreturn x * 3",
    "flag": "flag = bool(x.sum().item() > 0)  # HERE\nreturn x * 2 if flag else x * 3",
    "text": "print(f'{x.sum().item():.3f}')  # HERE\nreturn x",
    "items that are put into a list": "for i in x.argsort().tolist():  # HERE\n    keep.append(i)\nreturn x[keep]",
}


@pytest.mark.parametrize("body", OPEN.values(), ids=OPEN)
def test_a_number_that_may_be_any_is_let_into_the_graph(body: str, tmp_path: Path) -> None:
    assert "capture_scalar_outputs" in "".join(
        advice.rewrite or "" for advice in _advice(tmp_path, "gb0124", body)
    )


@pytest.mark.parametrize("body", NEEDED.values(), ids=NEEDED)
def test_a_number_that_has_to_be_known_gets_no_setting(body: str, tmp_path: Path) -> None:
    advice = [each for gb_id in ("gb0124", "gb0033") for each in _advice(tmp_path, gb_id, body)]
    assert advice
    assert not any((each.rewrite and not each.replaces) for each in advice)


@pytest.mark.parametrize(
    ("body", "offered"),
    [
        ("y = x[x > m]  # HERE\nreturn y.sum()", True),
        ("y = x[x > m]  # HERE\nif y.numel() > 0:\n    return y.max()\nreturn x.min()", False),
        ("if len(x[x > m]) > 0:  # HERE\n    return x.sum()\nreturn x.mean()", False),
    ],
)
def test_an_open_size_is_offered_only_where_no_test_needs_it(
    body: str, offered: bool, tmp_path: Path
) -> None:
    assert (
        any((advice.rewrite and not advice.replaces) for advice in _advice(tmp_path, "gb0036", body))
        == offered
    )


def test_a_call_put_off_does_not_take_its_numbers_out_of_the_graph(tmp_path: Path) -> None:
    advice = _advice(tmp_path, "gb0059", "print(x.sum())  # HERE\nreturn x")
    taken = _advice(tmp_path, "gb0059", "print(x.sum().item())  # HERE\nreturn x")
    assert [bool(each.rewrite and not each.replaces) for each in advice] == [False, True]
    assert [bool(each.replaces) for each in taken] == [True]


def test_every_certain_case_is_certain_because_of_what_it_differs_in(tmp_path: Path) -> None:
    """The counterpart of the table: the same shapes without what makes them uncertain."""
    certain = {
        "gb0170": "y = x * 2\nif x.sum() > 0:  # HERE\n    y = y + 1\nreturn y",
        "gb0124": "s = x.sum().item()  # HERE\nreturn x * s",
        "gb0059": "print(x)  # HERE\nreturn x",
        "gb0036": "return x[x > 0].sum()  # HERE",
        "gb0007": "k = random.random()  # HERE\nreturn x.sum() * k",
    }
    for gb_id, body in certain.items():
        assert [advice for advice in _advice(tmp_path, gb_id, body) if advice.replaces], body


def test_without_the_file_only_the_line_itself_is_looked_at() -> None:
    asked = _break("gb0025", source="torch._dynamo.graph_break()")
    (graph_break,) = with_advice([asked])
    assert [advice.title for advice in graph_break.advice] == ["remove the call"]
    assert graph_break.advice[0].replaces == asked.source


def test_a_file_that_changed_since_gives_no_rewrite(tmp_path: Path) -> None:
    file = tmp_path / "changed.py"
    file.write_text("import torch\n\n\ndef f(x):\n    return x\n")
    graph_break = _break("gb0170", source="if x.sum() > 0:", file=str(file), line=5)
    assert not [advice for advice in with_advice([graph_break])[0].advice if advice.replaces]


def test_withheld_source_is_not_read_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "withheld.py"
    file.write_text("import torch\n\n\ndef f(x):\n    print(x)\n    return x\n")
    (graph_break,) = with_advice([_break("gb0059", file=str(file), line=5)])
    assert not any(advice.replaces for advice in graph_break.advice)


def test_a_chained_break_gets_no_advice_of_its_own() -> None:
    (graph_break,) = with_advice([_break("gb7000", source="print(x)", chained=True)])
    assert graph_break.advice == []


def test_a_break_of_an_unknown_kind_gets_words() -> None:
    (graph_break,) = with_advice([_break("gb9999", source="y = strange(x)")])
    assert [advice.title for advice in graph_break.advice] == ["move it out of the compiled function"]


def test_at_least_forty_kinds_of_break_are_advised_on_and_torch_knows_them_all() -> None:
    assert len(advised_ids()) >= 40
    if not break_registry.missing():
        assert [each for each in sorted(advised_ids()) if break_registry.by_id(each) is None] == []


def test_every_id_is_answered() -> None:
    breaks = [_break(gb_id, source="y = g(x)", explanation="") for gb_id in sorted(advised_ids())]
    for graph_break in [answered for each in breaks for answered in with_advice([each])]:
        assert graph_break.advice, graph_break.id
        for advice in graph_break.advice:
            assert advice.title, graph_break.id
            assert advice.why.endswith("."), graph_break.id
            assert advice.fix_class in {"exact", "tolerance", "semantic"}, graph_break.id
            assert "{" not in advice.title + advice.why, graph_break.id


def test_kinds_have_names_of_their_own() -> None:
    names = [kind.name for kind in kinds()]
    assert len(names) == len(set(names))


def _advice(folder: Path, gb_id: str, body: str) -> list[Advice]:
    indented = "\n".join("    " + line for line in body.split("\n"))
    text = f"{HEAD}def f(self, x, y, m, k, a, b, it, things, lock, ready):\n{indented}\n"
    ast.parse(text)
    file = folder / f"{abs(hash(body))}.py"
    file.write_text(text)
    lines = text.split("\n")
    line = next(number for number, each in enumerate(lines, 1) if "HERE" in each)
    return with_advice([_break(gb_id, source=lines[line - 1].strip(), file=str(file), line=line)])[0].advice


def _break(gb_id: str, **about: object) -> Break:
    given = {"file": "gone.py", "line": 1, "reason": "a break", **about}
    return Break(id=gb_id, **given)  # type: ignore[arg-type]
