"""Checking a workload: measured, with its phases and its memory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pyrometer.bench.measure import Progress, measure
from pyrometer.bench.quality import Circumstances
from pyrometer.checkup.checkup import Checkup
from pyrometer.checkup.compiling import compiled_by_itself, try_compile
from pyrometer.checkup.tracing import trace_workload, traced_fields
from pyrometer.compiler.collecting.collector import collect
from pyrometer.hardware.environment import read_environment
from pyrometer.quantity import Seconds
from pyrometer.workload.workload import Workload


def check_workload(
    work: Workload,
    target: str,
    *,
    budget_s: Seconds,
    confidence: float,
    progress: Progress | None = None,
    peaks_folder: Path | None = None,
    compiling: bool = False,
) -> Checkup:
    """Measure a workload with its phases and memory, then trace a few of its steps; say what it compiled meanwhile.

    Args:
        work: what to check.
        target: as it was typed.
        budget_s: time to measure; tracing takes up to a third on top.
        confidence: of intervals.
        progress: told of the share done.
        peaks_folder: where measured peaks of machines are kept; without it there is no roofline on a CPU.
        compiling: try torch.compile on a program that does not use it.

    Raises:
        UserProgramError: the very first step raised.
    """
    asked = Circumstances(command=f"pyrometer check {target}", budget_s=budget_s)
    with collect() as collector:
        measurement = measure(
            work, budget_s=budget_s, confidence=confidence, circumstances=asked, progress=progress
        )
    environment = read_environment()
    found = Checkup(
        target=target,
        measurement=measurement,
        phases=measurement.phases,
        memory=measurement.memory,
        environment=environment,
        compiled=compiled_by_itself(collector.log(), measurement),
    )
    if measurement.failure is not None or measurement.interrupted:
        return found
    if progress is not None:
        progress(1.0, "tracing a few steps")
    trace, notes = trace_workload(work, step_s=measurement.median_s, budget_s=budget_s)
    more = {} if trace is None else traced_fields(trace, environment, peaks_folder)
    notes = [*notes, *more.pop("notes", [])]
    if compiling and found.compiled is None:
        if progress is not None:
            progress(1.0, "trying torch.compile")
        more["compiled"], why_not = try_compile(work, budget_s=budget_s)
        notes += why_not
    return msgspec.structs.replace(found, **more, notes=notes)
