from __future__ import annotations

import textwrap

import pytest

from pyrometer.rules.lint.suppression import ignore_for, ignores_in
from pyrometer.source.module import Module


def ignores(text: str):
    return ignores_in(Module.parse("a.py", textwrap.dedent(text)))


def lines_of(text: str) -> list[int]:
    """Lines at which the first comment of a text ignores PYR890."""
    found = ignores(text)
    return [line for line in range(1, text.count("\n") + 1) if ignore_for(found, "PYR890", line)]


@pytest.mark.parametrize(
    ("comment", "codes", "reason"),
    [
        ("# pyrometer: ignore[PYR890] once per epoch", ["PYR890"], "once per epoch"),
        ("# pyrometer: ignore[slow-call] once", ["PYR890"], "once"),
        ("# pyrometer: ignore[ PYR890 , risky-call ] both", ["PYR890", "PYR891"], "both"),
        ("#pyrometer:ignore[pyr890]", ["PYR890"], ""),
        ("# pyrometer: ignore[PYR890]", ["PYR890"], ""),
        ("# pyrometer: ignore[PYR890] see #12, PR#3", ["PYR890"], "see #12, PR#3"),
        ("# noqa: E501  # pyrometer: ignore[PYR890] long  # type: ignore", ["PYR890"], "long"),
        ("# pyrometer: ignore[PYR999] no such", [], "no such"),
        ("# pyrometer: ignore all of it", [], "all of it"),
    ],
)
def test_a_comment_names_rules_and_the_reason(slow_call, risky_call, comment, codes, reason):
    (ignore,) = ignores(f"x = slow()  {comment}\n")
    assert sorted(code for some in ignore.selectors.values() for code in some) == codes
    assert ignore.reason == reason
    assert not ignore.whole_file


def test_a_beginning_of_codes_names_all_of_them(slow_call, risky_call):
    (ignore,) = ignores("x = 1  # pyrometer: ignore[PYR89] all slow ones\n")
    assert ignore.selectors == {"PYR89": {"PYR890", "PYR891"}}


@pytest.mark.parametrize(
    "text",
    [
        "x = '# pyrometer: ignore[PYR890] in a string'\n",
        '"""\n# pyrometer: ignore[PYR890] in a docstring\n"""\n',
        "x = 1  # the pyrometer: ignore[PYR890]\n",
        "x = 1  # pyrometer: ignored[PYR890]\n",
    ],
)
def test_what_is_no_such_comment_ignores_nothing(slow_call, text):
    assert ignores(text) == []


IGNORE = "# pyrometer: ignore[PYR890] why"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"a()\nx = slow()  {IGNORE}\nb()\n", [2]),
        (f"x = f(  {IGNORE}\n    slow(),\n    slow(),\n)\nb()\n", [1, 2, 3, 4]),
        (f"x = f(\n    slow(),\n    slow(),\n)  {IGNORE}\nb()\n", [1, 2, 3, 4]),
        (f"x = f(\n    slow(),  {IGNORE}\n    slow(),\n)\n", [2]),
        (f"for x in f(  {IGNORE}\n    slow()\n):\n    slow()\n", [1, 2, 3]),
        (f"if slow():  {IGNORE}\n    slow()\n", [1]),
        (f"if slow(): slow()  {IGNORE}\n", [1]),
        (f"{IGNORE}\nslow()\nslow()\n", [2]),
        (f"if x:\n    {IGNORE}\n    f(\n        slow()\n    )\n    slow()\n", [3, 4, 5]),
        (f"{IGNORE}\n\n# more words\nslow()\n", [4]),
        (f"@deco(slow())  {IGNORE}\ndef f(\n    a=slow(),\n):\n    slow()\n", [1, 2, 3, 4]),
        (f"def f(  {IGNORE}\n    a=slow(),\n):\n    slow()\n", [1, 2, 3]),
        (f"match slow():  {IGNORE}\n    case 1:\n        slow()\n", [1]),
        (f"x = 1\n{IGNORE.replace('ignore[', 'ignore-file[')}\nslow()\n", [1, 2, 3]),
        (f"x = 1\n{IGNORE}\n", [2]),
        (f"x = '''a\nb'''; slow()  {IGNORE}\n", [2]),
        (f"x = '''\n''' + slow()  {IGNORE}\n", [1, 2]),
    ],
)
def test_where_an_ignore_counts(slow_call, text, lines):
    assert lines_of(text) == lines


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_places_hold_with_every_line_end(slow_call, end):
    text = f"x = 1\né = slow()  {IGNORE}\n".replace("\n", end)
    (ignore,) = ignores_in(Module.parse("a.py", text))
    assert (ignore.line, ignore.column, ignore.end_column) == (2, 12, 12 + len(IGNORE))


def test_the_nearest_comment_is_the_one_that_ignores(slow_call):
    found = ignores("# pyrometer: ignore-file[PYR89] all\nslow()  # pyrometer: ignore[PYR890] this\n")
    ignore = ignore_for(found, "PYR890", 2)
    assert ignore is not None
    assert ignore.reason == "this"
    assert ignore_for(found, "PYR101", 2) is None


class TestNoqa:
    """As other linters have it."""

    @pytest.mark.parametrize(
        ("comment", "named"),
        [
            ("# noqa: PYR101", {"PYR101"}),
            ("# NOQA:PYR101,PYR201", {"PYR101", "PYR201"}),
            ("# noqa: E501, PYR101 F401 it is rare", {"PYR101"}),
            ("# type: ignore  # noqa: PYR101", {"PYR101"}),
        ],
    )
    def test_our_codes_are_ignored_at_the_line(self, comment, named):
        (ignore,) = ignores(f"import torch\nx = y.item()  {comment}\nz = 1\n")
        assert set(ignore.selectors) == named
        assert all(ignore.covers(code, 2) and not ignore.covers(code, 3) for code in named)

    @pytest.mark.parametrize("who", ["pyrometer", "ruff", "flake8"])
    def test_of_a_whole_file(self, who):
        (ignore,) = ignores(f"import torch\n# {who}: noqa: PYR101\nx = y.item()\n")
        assert ignore.covers("PYR101", 3)
        assert not ignore.covers("PYR102", 3)

    @pytest.mark.parametrize(
        "comment", ["# noqa", "# noqa: E501", "# noqa : all", "# ruff: noqa", "# noqa: see PYR101"]
    )
    def test_what_names_none_of_our_codes_is_not_ours(self, comment):
        assert not ignores(f"import torch\nx = y.item()  {comment}\n")
