"""One line of the checklist: what decides its status."""

from __future__ import annotations

from typing import Any

from pyrometer.advice import Advice
from pyrometer.place import Place
from pyrometer.rules.audit.audit import band
from pyrometer.rules.audit.item import Failure, Item
from pyrometer.rules.audit.scoring import Breach
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding

NOTHING = Case(target="t")


def item(**more: Any) -> Item:
    fields: dict[str, Any] = {
        "code": "A901",
        "title": "It holds",
        "needed": "a figure",
        "proof": lambda _: None,
    }
    return Item(**{**fields, **more})


def finding(code: str = "PYR101", **more: Any) -> Finding:
    fields: dict[str, Any] = {"severity": "warning", "where": Place(file="a.py", line=3), **more}
    return Finding(
        code=code,
        name="n",
        message="it waits",
        confidence="high",
        advice=Advice(slug="a", title="do not", fix_class="exact"),
        **fields,
    )


def test_without_proof_or_fault_it_is_unknown_and_says_what_to_observe() -> None:
    answer = item().answer(NOTHING)
    assert (answer.status, answer.reason) == ("unknown", "not observed: a figure")


def test_a_proof_lets_it_pass_with_its_figures() -> None:
    answer = item(proof=lambda _: {"share": 0.123456, "on": True, "names": ["a", "b"]}).answer(NOTHING)
    assert answer.status == "pass"
    assert answer.reason == "share 0.1235, on yes, names a, b"
    assert answer.evidence == {"share": 0.123456, "on": True, "names": ["a", "b"]}


def test_a_proof_of_nothing_but_unknown_figures_is_none() -> None:
    answer = item(proof=lambda _: {"share": None, "queue": None}).answer(NOTHING)
    assert (answer.status, answer.evidence) == ("unknown", {})
    half = item(proof=lambda _: {"share": 0.5, "queue": None}).answer(NOTHING)
    assert (half.status, half.evidence) == ("pass", {"share": 0.5})


def test_a_finding_of_its_rules_breaks_it_whatever_the_proof_says() -> None:
    answer = item(rules=("PYR101",), proof=lambda _: {"share": 0.5}).answer(NOTHING, [Breach(finding())])
    assert (answer.status, answer.reason, answer.advice) == ("fail", "it waits", "Do not.")
    assert answer.evidence == {"finding": "PYR101", "file": "a.py", "line": 3}


def test_an_ignored_finding_leaves_it_unknown_and_another_fails_it() -> None:
    one = item(rules=("PYR101", "PYR102"), proof=lambda _: {"share": 0.5})
    ignored = Breach(finding(), "once a day")
    answer = one.answer(NOTHING, [ignored])
    assert (answer.status, answer.reason) == ("unknown", "PYR101 is ignored: once a day")
    assert one.answer(NOTHING, [ignored, Breach(finding("PYR102"))]).status == "fail"


def test_an_item_whose_rule_the_settings_leave_out_cannot_pass() -> None:
    one = item(rules=("PYR101", "PYR102"), proof=lambda _: {"share": 0.5})
    answer = one.answer(NOTHING, ignored={"PYR102": "no GPU here"})
    assert (answer.status, answer.reason) == ("unknown", "PYR102 is ignored: no GPU here")
    assert one.answer(NOTHING, ignored={"PYR103": "another"}).status == "pass"


def test_a_check_of_its_own_breaks_it() -> None:
    failure = Failure(reason="too wide", evidence={"width": 0.3}, advice="measure longer")
    answer = item(fault=lambda _: failure, proof=lambda _: {"width": 0.3}).answer(NOTHING)
    assert (answer.status, answer.reason, answer.evidence) == ("fail", "too wide", {"width": 0.3})


def test_what_does_not_concern_a_program_is_not_judged_unless_a_rule_speaks() -> None:
    one = item(applies=lambda _: "it has no loader", rules=("PYR101",), proof=lambda _: {"x": 1})
    answer = one.answer(NOTHING)
    assert (answer.status, answer.reason) == ("not applicable", "it has no loader")
    assert one.answer(NOTHING, [Breach(finding())]).status == "fail"


def test_bands() -> None:
    assert [band(one) for one in (None, 0.0, 69.99, 70.0, 90.0, 90.01, 100.0)] == [
        None,
        "below 70",
        "below 70",
        "70 to 90",
        "70 to 90",
        "above 90",
        "above 90",
    ]
