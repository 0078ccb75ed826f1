"""What findings advise of a program: it is diagnosed in a fresh process, before anything is tried."""

from __future__ import annotations

from pyrometer.bench.fresh import run_fresh
from pyrometer.bench.stage import Progress
from pyrometer.errors import PyrometerError
from pyrometer.quantity import Seconds
from pyrometer.record import Record
from pyrometer.rules.diagnose import diagnose
from pyrometer.rules.finding import Finding
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import Target, TargetSpec, entries_of

DIAGNOSE_S: Seconds = 4.0
LATEST_S: Seconds = 180.0


class DiagnoseRequest(Record, frozen=True, kw_only=True):
    """What to diagnose."""

    spec: TargetSpec
    budget_s: Seconds


class Advised(Record, frozen=True, kw_only=True):
    """The findings whose advice names a lever."""

    findings: list[Finding]


def diagnosed(request: DiagnoseRequest) -> Advised:
    """Diagnose a target, in the process of the caller."""
    target = request.spec.target()
    found = diagnose(load_workload(target), budget_s=request.budget_s, sources=entries_of(target))
    return Advised(findings=[finding for finding in found.findings if finding.advice.lever is not None])


def findings_of(target: Target, progress: Progress) -> tuple[list[Finding], str | None]:
    """The findings of a target that name a lever; and why there are none where the diagnosis failed: a search goes on without."""
    progress(0.0, "what findings advise")
    try:
        request = DiagnoseRequest(spec=target.spec, budget_s=DIAGNOSE_S)
        return run_fresh(diagnosed, request, timeout_s=LATEST_S).findings, None
    except PyrometerError as error:
        return [], f"without predictions of findings: {error}"
