"""Five programs with one classic fault each: the check names that fault, at its line, and no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from pyrometer.evidence.observe import observe
from pyrometer.evidence.options import ObserveOptions
from pyrometer.report.documents import CheckDocument
from pyrometer.rules.explain import explain
from pyrometer.rules.finding import Finding
from pyrometer.rules.ranking import promise
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import parse_target

pytestmark = pytest.mark.measuring

FOLDER = Path(__file__).parents[2] / "examples" / "bottlenecks"
BUDGET_S = 2.0


class Fault(NamedTuple):
    """What is wrong with a program."""

    name: str
    codes: tuple[str, ...]
    line: str
    """Begins the line that is at fault."""


FAULTS = (
    Fault("inefficient_op", ("PYR515", "PYR516"), "return torch.sort("),
    Fault("item_each_step", ("PYR101",), "worst = max(worst, loss.item())"),
    Fault("memory_churn", ("PYR215", "PYR511"), "history = torch.cat("),
    Fault("slow_loader", ("PYR301",), "def decode("),
    Fault("tiny_ops", ("PYR109", "PYR111"), "for i in range("),
)
every_fault = pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=fault.name, marks=[] if fault.name == "inefficient_op" else [pytest.mark.slow])
        for fault in FAULTS
    ],
)
Check = Callable[[Fault, str], CheckDocument]


@pytest.fixture(scope="module")
def check() -> Iterator[Check]:
    """One program as a user would check it; each variant once."""
    seen: dict[tuple[str, str], CheckDocument] = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that steps are alike on a busy machine

    def look(fault: Fault, variant: str) -> CheckDocument:
        if (fault.name, variant) not in seen:
            file = FOLDER / f"{fault.name}.py"
            work = load_workload(parse_target(f"{file}:{variant}"))
            evidence = observe(work, f"{file}:{variant}", ObserveOptions(budget_s=BUDGET_S)).evidence
            seen[fault.name, variant] = CheckDocument(evidence=evidence, diagnosis=explain(evidence, (file,)))
        return seen[fault.name, variant]

    yield look
    torch.set_num_threads(threads)


def line_of(fault: Fault) -> int:
    text = (FOLDER / f"{fault.name}.py").read_text(encoding="utf-8")
    lines = [
        number for number, line in enumerate(text.splitlines(), 1) if line.strip().startswith(fault.line)
    ]
    assert len(lines) == 1
    return lines[0]


def serious(document: CheckDocument) -> list[Finding]:
    """Findings about the program itself: neither remarks nor reservations about the measurement."""
    return [
        finding
        for finding in document.diagnosis.findings
        if finding.severity != "info" and not finding.code.startswith("PYR0")
    ]


@every_fault
def test_the_first_finding_is_the_fault_at_its_line(check: Check, fault: Fault) -> None:
    top = check(fault, "workload").diagnosis.findings[0]
    assert top.code in fault.codes, top.message
    assert top.severity == "warning"
    assert Path(top.where.file or "").name == f"{fault.name}.py"
    assert top.where.line == line_of(fault)
    assert top.advice.gain is not None
    assert top.advice.gain.ratio_low is not None
    assert top.advice.gain.ratio_low < 0.9


@every_fault
def test_all_serious_findings_are_about_the_same_cost(check: Check, fault: Fault) -> None:
    findings = serious(check(fault, "workload"))
    assert len({finding.resource for finding in findings}) == 1, [
        (finding.code, finding.resource, finding.message) for finding in findings
    ]
    assert all(finding.overlaps for finding in findings[1:])


@every_fault
def test_the_mended_program_has_none_of_it(check: Check, fault: Fault) -> None:
    resource = check(fault, "workload").diagnosis.findings[0].resource
    left = [
        finding
        for finding in serious(check(fault, "fixed"))
        if finding.code in fault.codes or finding.resource == resource
    ]
    assert left == [], [finding.message for finding in left]


@every_fault
def test_no_reservation_stands_above_a_finding_that_promises_something(check: Check, fault: Fault) -> None:
    document = check(fault, "workload")
    peak = document.evidence.memory.peak_bytes if document.evidence.memory is not None else None
    promises = [promise(finding, peak) for finding in document.diagnosis.findings]
    doubts = [i for i, finding in enumerate(document.diagnosis.findings) if finding.code.startswith("PYR0")]
    assert not any(promises[i] for i in doubts)
    assert all(promises[after] == 0 for i in doubts for after in range(i, len(promises)))


@every_fault
def test_the_reading_leads_to_the_same_finding(check: Check, fault: Fault) -> None:
    document = check(fault, "workload")
    read = {code for step in document.diagnosis.reading for code in step.codes}
    assert document.diagnosis.findings[0].code in read
    assert all(step.answer for step in document.diagnosis.reading)
