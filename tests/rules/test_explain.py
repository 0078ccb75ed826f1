"""From evidence to a diagnosis: who is asked, what a fault of a rule does, what is told once."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from pyrometer.place import Place
from pyrometer.rules.case import Case
from pyrometer.rules.explain import diagnose_case, findings_of, missing_kinds, num_asked
from pyrometer.rules.finding import Finding, Suppressed
from pyrometer.rules.match import match
from pyrometer.rules.rule import Rule
from pyrometer.source.module import Module

TEXT = "x = 1\ny = 2\n"


def rule_of(code: str, **more: Any) -> Rule:
    """A rule that is not registered."""
    doc = f"Fault {code}.\n\n## Use instead\nWrite it once.\n"
    fields = {"severity": "warning", "fix_class": "exact", **more}
    return Rule(code=code, name=f"fault-{code.lower()}", doc=doc, **fields)


def said(rule: Rule, line: int | None = None, **more: Any) -> Finding:
    place = Place(file="train.py", line=line) if line is not None else Place()
    return rule.finding(message="m", where=place, confidence="high", advice="a", **more)


def in_source(code: str) -> Rule:
    """A rule that finds every statement of a file."""
    rule = rule_of(code)
    rule.in_source(lambda module: [match(node, "here") for node in module.tree.body])
    return rule


def test_a_rule_that_raises_is_told_and_the_others_answer() -> None:
    broken, whole = rule_of("PYR801"), in_source("PYR802")

    @broken.in_source
    def fail(_module: Module) -> Iterator[Any]:
        yield match(_module.tree.body[0], "lost")
        raise ZeroDivisionError("nothing to share")

    evidence = Case(target="t", modules=(Module.parse("train.py", TEXT),))
    diagnosis = diagnose_case(evidence, [broken, whole])
    assert [finding.code for finding in diagnosis.findings] == ["PYR802"]
    assert len(diagnosis.findings[0].evidence["also_at_lines"]) == 1
    assert diagnosis.notes == [
        "PYR801 fault-pyr801 could not answer (ZeroDivisionError: nothing to share); please report it"
    ]


def test_only_rules_with_all_their_evidence_are_asked() -> None:
    rule = rule_of("PYR801")
    asked = []

    @rule.in_evidence("trace", "memory")
    def look(case: Case) -> list[Finding]:
        asked.append(case)
        return [said(rule)]

    half = Case(target="t", trace=object())  # type: ignore[arg-type] - nobody looks into it
    assert diagnose_case(Case(target="t"), [rule]).findings == []
    assert findings_of(half, [rule]) == []
    assert asked == []
    assert num_asked(half, [rule]) == 0
    assert "memory" in missing_kinds(half)
    assert "trace" not in missing_kinds(half)


def test_an_empty_diagnosis_says_what_was_not_observed() -> None:
    diagnosis = diagnose_case(Case(target="t"))
    assert diagnosis.findings == []
    assert diagnosis.num_rules == 0
    assert {"trace", "memory", "measurement", "source"} <= set(diagnosis.missing)
    assert [step.verdict for step in diagnosis.reading] == ["unknown"] * 6


def test_what_a_record_and_the_source_both_show_is_told_once_with_its_cost() -> None:
    rule = in_source("PYR801")
    rule.in_evidence("program")(lambda _: [said(rule, line=2, evidence={"from": "record"})])
    evidence = Case(
        target="t",
        program=object(),  # type: ignore[arg-type] - nobody looks into it
        modules=(Module.parse("src/train.py", TEXT),),  # a record may shorten the path
    )
    findings = findings_of(evidence, [rule])
    assert [(finding.where.line, finding.evidence) for finding in findings] == [
        (2, {"from": "record"}),
        (1, {}),
    ]


def test_matches_that_a_record_could_have_confirmed_and_does_not_are_remarks() -> None:
    alone = Case(target="t", modules=(Module.parse("train.py", TEXT),))
    traced = Case(target="t", trace=SimpleNamespace(device_busy_ns=1), modules=alone.modules)  # type: ignore[arg-type] - enough of one

    def severities(case: Case, *, reads: bool, **more: Any) -> set[str]:
        rule = rule_of("PYR801", **more)
        rule.in_source(in_source("PYR802").source_checks[0])
        if reads:
            rule.in_evidence("trace")(lambda _: [])
        return {finding.severity for finding in findings_of(case, [rule])}

    assert severities(alone, reads=True) == {"warning"}
    assert severities(traced, reads=True) == {"info"}
    assert severities(traced, reads=False) == {"warning"}  # no record says anything about it
    assert severities(traced, reads=True, severity="error") == {"error"}


def test_a_match_without_advice_of_its_own_gives_the_documented_one() -> None:
    evidence = Case(target="t", modules=(Module.parse("train.py", TEXT),))
    assert {finding.advice.text for finding in findings_of(evidence, [in_source("PYR801")])} == {
        "Write it once."
    }


def test_hidden_findings_are_kept_apart_with_their_reason() -> None:
    def hide(finding: Finding) -> Suppressed | None:
        if finding.where.line != 1:
            return None
        return Suppressed(
            code=finding.code, name=finding.name, where=finding.where, reason="once a day", by="comment"
        )

    evidence = Case(target="t", modules=(Module.parse("train.py", TEXT),))
    diagnosis = diagnose_case(evidence, [in_source("PYR801")], hide)
    assert [finding.where.line for finding in diagnosis.findings] == [2]
    assert [(suppressed.where.line, suppressed.reason) for suppressed in diagnosis.suppressed] == [
        (1, "once a day")
    ]


def test_limits_are_the_rules_own_unless_the_user_set_them() -> None:
    from pyrometer.rules.rule import Limit

    rule = rule_of("PYR801", limits=(Limit("min_share", 0.1, "noise"),))
    assert Case(target="t").limit(rule, "min_share") == 0.1
    assert Case(target="t", limits={"PYR801.min_share": 0.4}).limit(rule, "min_share") == 0.4
