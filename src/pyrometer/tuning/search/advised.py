"""What findings advise of a program: it is diagnosed in a fresh process, before anything is tried."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from typing import Annotated

from pyrometer.bench.fresh import run_fresh
from pyrometer.bench.stage import Progress
from pyrometer.errors import InputError, PyrometerError
from pyrometer.evidence.observe import observe
from pyrometer.evidence.options import ObserveOptions
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.record import Record, doc
from pyrometer.rules.explain import explain
from pyrometer.rules.finding import Finding
from pyrometer.tuning.search.budget import Budget
from pyrometer.workload.loading import load_workload
from pyrometer.workload.target import Target, TargetSpec, entries_of

MEASURED_SHARE = 0.05
"""Of the time for the diagnosis: its observers take several times as long as the measurement."""

LATEST_SHARE = 0.4
"""Of that time, after which no observer is begun: the last one, and the start of the process, need the rest."""

END_SHARE = 0.75
"""Of that time, after which the observer that is at work is interrupted: what was seen by then is what is explained."""


class DiagnoseRequest(Record, frozen=True, kw_only=True):
    """What to diagnose."""

    spec: TargetSpec
    budget_s: Seconds
    latest_s: Seconds
    end_at: Annotated[float, doc("when observers are interrupted, in seconds of the epoch")]


class Advised(Record, frozen=True, kw_only=True):
    """The findings whose advice names a lever."""

    findings: list[Finding]
    unloadable: Annotated[str | None, doc("why the target cannot be loaded; null where it was")] = None


def diagnosed(request: DiagnoseRequest) -> Advised:
    """Diagnose a target, in the process of the caller."""
    target = request.spec.target()
    options = ObserveOptions(budget_s=request.budget_s, latest_s=request.latest_s, command="")
    try:
        with _interrupted_at(request.end_at):
            try:
                work = load_workload(target)
            except InputError as error:
                return Advised(findings=[], unloadable=str(error))
            evidence = observe(work, target.text, options).evidence
    except KeyboardInterrupt:
        raise PyrometerError("the time for the diagnosis was over before a step was measured") from None
    found = explain(evidence, entries_of(target)).findings
    return Advised(findings=[finding for finding in found if finding.advice.lever is not None])


@contextlib.contextmanager
def _interrupted_at(end_at: float) -> Iterator[None]:
    """What Ctrl-C does, at a time: observers end, and what was observed is kept. Where the system has no timers, nothing."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, max(end_at - time.time(), 0.1))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def findings_of(target: Target, progress: Progress, budget: Budget) -> tuple[list[Finding], str | None]:
    """The findings of a target that name a lever; and why there are none where the diagnosis failed: a search goes on without.

    Raises:
        InputError: the target cannot be loaded, so that a baseline could not be either.
    """
    allowed_s = budget.diagnosis_s
    if not allowed_s:
        return (
            [],
            f"without predictions of findings: {format_seconds(budget.total_s)} are too short for a diagnosis",
        )
    progress(0.0, "what findings advise")
    request = DiagnoseRequest(
        spec=target.spec,
        budget_s=allowed_s * MEASURED_SHARE,
        latest_s=allowed_s * LATEST_SHARE,
        end_at=time.time() + allowed_s * END_SHARE,
    )
    try:
        advised = run_fresh(diagnosed, request, timeout_s=allowed_s)
    except PyrometerError as error:
        return [], f"without predictions of findings: {error}"
    if advised.unloadable is not None:
        raise InputError(advised.unloadable)
    return advised.findings, None
