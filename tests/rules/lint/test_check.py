from __future__ import annotations

import ast

import pytest

from pyrometer.rules.lint.check import check_text
from pyrometer.rules.match import match
from pyrometer.rules.registry import find_rule


def meta(text: str, *rules):
    """What is said about comments: line, code, message."""
    about = [find_rule("PYR090"), find_rule("PYR091")]
    checked = check_text("a.py", f"import torch\n{text}\n", [*about, *rules])
    return [(hit.match.line, hit.rule.code, hit.match.message) for hit in checked.found]


def test_an_ignored_finding_is_kept_with_its_reason(slow_call):
    checked = check_text(
        "a.py", "import torch\nslow()\nslow()  # pyrometer: ignore[slow-call] rare\n", [slow_call]
    )
    assert [(hit.match.line, hit.rule) for hit in checked.found] == [(2, slow_call)]
    assert [(hit.match.line, ignore.reason) for hit, ignore in checked.ignored] == [(3, "rare")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("slow()  # pyrometer: ignore[PYR890] rare", []),
        ("slow()  # pyrometer: ignore[PYR890]", [("PYR091", "ignores PYR890 and does not say why")]),
        ("fine()  # pyrometer: ignore[PYR890] rare", [("PYR090", "PYR890 finds nothing here to ignore")]),
        (
            "fine()  # pyrometer: ignore[slow-cal] rare",
            [("PYR090", "slow-cal is no rule; did you mean slow-call?")],
        ),
        ("fine()  # pyrometer: ignore[PYR999] rare", [("PYR090", "PYR999 is no rule")]),
        (
            "slow()  # pyrometer: ignore rare",
            [
                ("PYR890", "slow() is slow"),
                ("PYR090", "names no rule and ignores nothing; write ignore[CODE] and the reason"),
            ],
        ),
        ("fine()  # pyrometer: ignore[PYR891] of a rule that did not run", []),
        ("fine()  # pyrometer: ignore[PYR89] of rules that did not all run", []),
        (
            "fine()  # pyrometer: ignore-file[PYR890] none",
            [("PYR090", "PYR890 finds nothing here to ignore")],
        ),
        ("slow()  # pyrometer: ignore-file[PYR890] some", []),
        (
            "slow()  # pyrometer: ignore[PYR890, PYR999] one of them",
            [("PYR090", "PYR999 is no rule")],
        ),
    ],
)
def test_comments_are_judged_themselves(slow_call, risky_call, line, said):
    assert [(code, message) for _, code, message in meta(line, slow_call)] == said


def test_no_comment_excuses_itself_but_another_may(slow_call):
    assert [code for _, code, _ in meta("fine()  # pyrometer: ignore[PYR890, PYR090] no", slow_call)] == [
        "PYR090"
    ]
    excused = "# pyrometer: ignore-file[PYR090] generated\nfine()  # pyrometer: ignore[PYR890] no"
    assert meta(excused, slow_call) == []


def test_a_file_without_torch_is_asked_nothing(slow_call):
    assert check_text("a.py", "import numpy\nslow()\n", [slow_call]).found == []


def test_a_rule_that_breaks_off_is_told_and_the_others_go_on(slow_call, make_rule):
    def breaks(module):
        yield match(module.tree.body[1], "seen before")
        raise ZeroDivisionError("division\nby zero")

    broken = make_rule("PYR892", "broken-rule", breaks)
    text = "import torch\nslow()  # pyrometer: ignore[PYR892] why\nslow()\n"
    checked = check_text("a.py", text, [find_rule("PYR090"), slow_call, broken])
    (failure,) = checked.failures
    assert failure.startswith(
        "a.py: rule PYR892 broken-rule broke off: ZeroDivisionError: division by zero; "
    )
    assert [(hit.rule.code, hit.match.line) for hit in checked.found] == [("PYR890", 2), ("PYR890", 3)]
    assert [hit.rule.code for hit, _ in checked.ignored] == ["PYR892"]


def test_the_same_match_twice_is_told_once(make_rule):
    twice = make_rule("PYR892", "twice", lambda module: [match(module.tree.body[1], "seen")] * 2)
    assert len(check_text("a.py", "import torch\nslow()\n", [twice]).found) == 1


def test_columns_count_characters(make_rule):
    def calls(module):
        return [match(call, "called") for call in module.nodes(ast.Call)]

    rule = make_rule("PYR892", "called", calls)
    (hit,) = check_text("a.py", "import torch\nx = 'äöü', slow()\n", [rule]).found
    assert (hit.match.column, hit.match.end_column) == (11, 17)
