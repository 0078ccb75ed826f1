"""Checking a workload: measured, traced, its memory profiled, its loader observed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from pyrometer.bench.measure import Progress, measure
from pyrometer.bench.quality import Circumstances
from pyrometer.checkup.checkup import Checkup
from pyrometer.checkup.compiling import compiled_by_itself, try_compile
from pyrometer.checkup.feeding import observe_feeding
from pyrometer.checkup.remembering import profile_workload
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
    tell = progress or _silent
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
    tell(1.0, "tracing a few steps")
    trace, notes = trace_workload(work, step_s=measurement.median_s, budget_s=budget_s)
    more = {} if trace is None else traced_fields(trace, environment, peaks_folder)
    notes = [*notes, *more.pop("notes", [])]
    if compiling and found.compiled is None:
        tell(1.0, "trying torch.compile")
        more["compiled"], why_not = try_compile(work, budget_s=budget_s)
        notes += why_not
    tell(1.0, "profiling memory")
    more["memory_profile"], why_not = profile_workload(work, step_s=measurement.median_s, budget_s=budget_s)
    notes += why_not
    tell(1.0, "observing the loader")
    more["loading"], why_not = observe_feeding(work, budget_s=budget_s)
    notes += why_not
    return msgspec.structs.replace(found, **more, notes=notes)


def _silent(_share: float, _what: str) -> None:
    """The progress of someone who does not ask."""
