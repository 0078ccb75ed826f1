"""All observers on one workload: measured, traced, its memory profiled, its loader and its numbers observed."""

from __future__ import annotations

import msgspec

from pyrometer.bench.measure import Progress, measure
from pyrometer.bench.quality import Circumstances
from pyrometer.checkup.checkup import Checkup
from pyrometer.checkup.compile import compiled_by_itself, try_compile
from pyrometer.checkup.loading import observe_feeding
from pyrometer.checkup.memory import profile_workload
from pyrometer.checkup.numerics import watch_workload
from pyrometer.checkup.options import CheckOptions
from pyrometer.checkup.trace import trace_workload, traced_fields
from pyrometer.compiler.collecting.collector import collect
from pyrometer.hardware.environment import read_environment
from pyrometer.rules.data.patterns.shares import data_share
from pyrometer.trace.reporting.verdict import judge
from pyrometer.workload.program.describe import describe
from pyrometer.workload.workload import Workload


def observe(work: Workload, target: str, options: CheckOptions, progress: Progress | None = None) -> Checkup:
    """Measure a workload with its phases and memory, then observe it in every other way.

    Args:
        work: what to observe.
        target: as it was typed.
        options: how much time to take.
        progress: told of the share done.

    Raises:
        UserProgramError: the very first step raised.
    """
    budget_s = options.budget_s
    tell = progress or _silent
    asked = Circumstances(command=f"pyrometer check {target}", budget_s=budget_s)
    with collect() as collector:
        measurement = measure(
            work,
            budget_s=budget_s,
            confidence=options.confidence,
            beyond_first_call=True,
            circumstances=asked,
            progress=progress,
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
    more = {} if trace is None else traced_fields(trace, environment, options)
    notes = [*notes, *more.pop("notes", [])]
    if options.compiling and found.compiled is None:
        tell(1.0, "trying torch.compile")
        more["compiled"], why_not = try_compile(work, budget_s=budget_s)
        notes += why_not
    tell(1.0, "profiling memory")
    more["memory_profile"], why_not = profile_workload(work, measurement, budget_s=budget_s)
    notes += why_not
    tell(1.0, "observing the loader")
    more["loading"], why_not = observe_feeding(work, measurement, budget_s=budget_s)
    notes += why_not
    data = data_share(measurement, more["loading"])
    if trace is not None and data is not None:
        more["trace_verdict"] = judge(more["trace"], data_share=data.share)
    tell(1.0, "watching the numbers")
    more["program"] = describe(work)
    more["numerics"], why_not = watch_workload(work, step_s=measurement.median_s, budget_s=budget_s)
    notes += why_not
    return msgspec.structs.replace(found, **more, notes=notes)


def _silent(_share: float, _what: str) -> None:
    """The progress of someone who does not ask."""
