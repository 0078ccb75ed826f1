"""Five programs with one classic fault each: the check names that fault, at its line, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from record_programs import QUICK_S, observed
from representative import standing_for_all

from pyrometer.rules.diagnosis import Diagnosis
from pyrometer.rules.explain import explain
from pyrometer.rules.finding import Finding
from recorded import FILES, checked


class Fault(NamedTuple):
    """What is wrong with a program."""

    name: str
    codes: tuple[str, ...]
    line: str
    """Begins the line that is at fault."""
    num_lines: int = 1
    """From there on, of which one may be told: a record without samples knows the function alone."""


FAULTS = (
    Fault("inefficient_op", ("PYR515", "PYR516"), "return torch.sort("),
    Fault("item_each_step", ("PYR101", "PYR126"), "for loss in losses:", 2),
    Fault("memory_churn", ("PYR215", "PYR511"), "history = torch.cat("),
    Fault("slow_loader", ("PYR301",), "def decode(", 8),
    Fault("tiny_ops", ("PYR109", "PYR111", "PYR126"), "for i in range("),
)
every_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)


def line_of(fault: Fault) -> int:
    text = FILES[fault.name].read_text(encoding="utf-8")
    lines = [
        number for number, line in enumerate(text.splitlines(), 1) if line.strip().startswith(fault.line)
    ]
    assert len(lines) == 1
    return lines[0]


def serious(diagnosis: Diagnosis) -> list[Finding]:
    """All but remarks."""
    return [finding for finding in diagnosis.findings if finding.severity != "info"]


def assert_is_fault(top: Finding, fault: Fault) -> None:
    assert top.code in fault.codes, top.message
    assert top.severity == "warning"
    assert Path(top.where.file or "").name == f"{fault.name}.py"
    assert top.where.line in range(line_of(fault), line_of(fault) + fault.num_lines)


@every_fault
def test_the_first_finding_is_the_fault_at_its_line(fault: Fault) -> None:
    top = checked(fault.name).diagnosis.findings[0]
    assert_is_fault(top, fault)
    assert top.advice.gain is not None
    assert top.advice.gain.ratio_low is not None
    assert top.advice.gain.ratio_low < 0.9


@pytest.mark.slow
@pytest.mark.measuring
@pytest.mark.parametrize("fault", standing_for_all({fault.name: fault for fault in FAULTS}, "slow_loader"))
def test_so_it_is_where_the_program_is_observed_anew(fault: Fault) -> None:
    assert_is_fault(
        serious(explain(observed(FILES[fault.name], budget_s=QUICK_S), (FILES[fault.name],)))[0], fault
    )


@every_fault
def test_all_serious_findings_are_about_the_same_cost(fault: Fault) -> None:
    findings = serious(checked(fault.name).diagnosis)
    assert len({finding.resource for finding in findings}) == 1, [
        (finding.code, finding.resource, finding.message) for finding in findings
    ]
    assert all(finding.overlaps for finding in findings[1:])


@every_fault
def test_the_mended_program_has_none_of_it(fault: Fault) -> None:
    resource = checked(fault.name).diagnosis.findings[0].resource
    left = [
        finding
        for finding in serious(checked(fault.name, "fixed").diagnosis)
        if finding.code in fault.codes or finding.resource == resource
    ]
    assert left == [], [finding.message for finding in left]
