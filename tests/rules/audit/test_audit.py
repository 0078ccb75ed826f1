"""The whole checklist: what is judged, on what, and how the score comes about."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pyrometer.advice import Advice
from pyrometer.place import Place
from pyrometer.rules.audit.audit import GROUPS, audit, band
from pyrometer.rules.audit.record import Audit, AuditItem
from pyrometer.rules.case import Case
from pyrometer.rules.explain import explain
from pyrometer.rules.finding import Finding
from pyrometer.rules.registry import find_rule
from pyrometer.rules.rule import Kind

PARTS = [kind for kind in get_args(Kind) if kind != "source"]
CODES = sorted({code for items in GROUPS.values() for item in items for code in item.rules})


def finding(code: str, severity: Any = "warning") -> Finding:
    return Finding(
        code=code,
        name="n",
        severity=severity,
        message="m",
        where=Place(),
        confidence="high",
        advice=Advice(slug="a", title="a", fix_class="exact"),
    )


def items_of(found: Audit) -> dict[str, AuditItem]:
    return {item.code: item for group in found.groups for item in group.items}


def without(case: Case, parts: set[str]) -> Case:
    gone: dict[str, Any] = {part: None for part in parts if part != "source"}
    return replace(case, **gone, **({"modules": ()} if "source" in parts else {}))


def test_codes_are_unique_and_their_first_digit_is_the_group() -> None:
    codes = [item.code for items in GROUPS.values() for item in items]
    assert len(codes) == len(set(codes))
    for number, items in enumerate(GROUPS.values(), 1):
        first = {item.code[1] for item in items}
        assert len(first) == 1, (number, first)


def test_every_rule_that_an_item_names_exists() -> None:
    for code in CODES:
        assert find_rule(code).code == code


def test_without_evidence_nothing_is_judged_and_there_is_no_score() -> None:
    found = audit(Case(target="t"), [])
    assert (found.score, found.band, found.applicable, found.passed) == (None, None, 0, 0)
    assert {item.status for item in items_of(found).values()} <= {"unknown", "not applicable"}


@given(
    gone=st.sets(st.sampled_from([*PARTS, "source"])),
    codes=st.lists(st.sampled_from(CODES), max_size=4),
    which=st.sampled_from(["trained", "served"]),
)
def test_nothing_passes_or_fails_without_evidence(
    trained: Case, served: Case, gone: set[str], codes: list[str], which: str
) -> None:
    evidence = without(trained if which == "trained" else served, gone)
    found = audit(evidence, [finding(code) for code in codes])
    items = items_of(found)
    for item in items.values():
        if item.status in {"pass", "fail"}:
            assert item.evidence, item.code
            assert any(value is not None for value in item.evidence.values()), item.code
        else:
            assert not item.evidence
        assert item.reason
        assert (item.advice is not None) == (item.status == "fail")
    passed = [item for item in items.values() if item.status == "pass"]
    failed = [item for item in items.values() if item.status == "fail"]
    assert (found.passed, found.applicable) == (len(passed), len(passed) + len(failed))
    assert found.unknown == sum(item.status == "unknown" for item in items.values())
    expected = 100 * len(passed) / (len(passed) + len(failed)) if passed or failed else None
    assert found.score == expected
    assert found.band == band(expected)


@pytest.mark.parametrize("which", ["trained", "served"])
def test_less_evidence_never_lets_more_pass(trained: Case, served: Case, which: str) -> None:
    whole = trained if which == "trained" else served
    passed = {code for code, item in items_of(audit(whole, [])).items() if item.status == "pass"}
    for part in [*PARTS, "source"]:
        less = items_of(audit(without(whole, {part}), []))
        more = {code for code, item in less.items() if item.status == "pass"} - passed
        assert {code for code in more if items_of(audit(whole, []))[code].status == "fail"} == set(), part


def test_a_real_training_is_judged_on_what_was_observed(trained: Case) -> None:
    found = audit(trained, explain(trained).findings)
    items = items_of(found)
    for code in ("A101", "A102", "A103", "A104", "A105", "A106", "A204"):
        assert items[code].status == "pass", (code, items[code].reason)
    for code, why in {
        "A201": "trains",
        "A303": "CPU",
        "A306": "convolutions",
        "A701": "one process",
        "A803": "serve",
    }.items():
        assert items[code].status == "not applicable"
        assert why in items[code].reason
    assert found.score is not None


def test_a_real_service_is_judged_on_its_source(served: Case) -> None:
    items = items_of(audit(served, explain(served).findings))
    for code in ("A201", "A801", "A802", "A803", "A804", "A805", "A806", "A807"):
        assert items[code].status == "pass", (code, items[code].reason)
    assert items["A106"].status == "not applicable"
    assert items["A401"].status == "not applicable"


def test_items_about_devices_are_judged_with_a_device(on_device: Case) -> None:
    items = items_of(audit(on_device, []))
    for code in ("A301", "A302", "A303", "A308", "A403"):
        assert items[code].status == "pass", (code, items[code].reason)
    assert items["A304"].status == "unknown"  # in which precision is not known without the program


@pytest.mark.parametrize("code", CODES)
def test_a_finding_fails_the_items_of_its_rule_and_no_other(code: str, on_device: Case) -> None:
    quiet, told = items_of(audit(on_device, [])), items_of(audit(on_device, [finding(code)]))
    changed = {item for item in told if told[item].status != quiet[item].status}
    codes = {item.code for items in GROUPS.values() for item in items if code in item.rules}
    assert changed <= codes
    assert all(told[item].status in {"fail", "not applicable"} for item in codes)
    assert items_of(audit(on_device, [finding(code, "info")])) == quiet
