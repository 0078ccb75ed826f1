"""Time per phase of a step: data, h2d, forward, backward, optimizer, and what the user named so.

Which event is in which phase is told in `pyrometer.trace.program.phase_labels`. `host_ns` is wall time: when any thread was in the
phase, as its innermost one. Phases on different threads may overlap (loading in the background), so that they may sum
to more than the span. Device work belongs to the phase that launched it.
"""

from __future__ import annotations

import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.kinds import Kind
from pyrometer.trace.program.phase_labels import PhaseLabels, phase_labels
from pyrometer.trace.records.breakdown import Phase, Phases, StepPhases
from pyrometer.trace.timing.activity import Activity
from pyrometer.trace.timing.innermost import innermost
from pyrometer.trace.timing.intervals import Intervals, clip, covered, length, merge, union
from pyrometer.trace.trace import RankTrace


@analysis("phases")
def phases(trace: RankTrace) -> Phases:
    """Time per phase (data, h2d, forward, backward, optimizer, …) on host and device, in all and per step."""
    labels = phase_labels(trace)
    host = _host_time(trace, labels)
    work = _device_work(trace, labels)
    span = trace.activity
    within = [clip(intervals, span.start_ns, span.end_ns) for intervals in host]
    return Phases(
        annotated=labels.sources[:1] == ["phase"],
        phases=_summaries(labels, host, work, span),
        steps=_steps(trace, labels, host, work),
        other_ns=span.span_ns - length(merge(*within)),
        other_device_ns=int(work.filter(pl.col("phase") < 0)["dur_ns"].sum()),
    )


def _host_time(trace: RankTrace, labels: PhaseLabels) -> list[Intervals]:
    """When any thread was in each phase."""
    pieces = innermost(trace)
    phase = labels.code[pieces.event]
    return [
        pieces.lanes.flatten(union(pieces.start[phase == code], pieces.end[phase == code]))
        for code in range(len(labels.names))
    ]


def _device_work(trace: RankTrace, labels: PhaseLabels) -> pl.DataFrame:
    work = trace.device_work
    return work.with_columns(phase=pl.Series(labels.code[work["event"].to_numpy()], dtype=pl.Int64))


def _summaries(labels: PhaseLabels, host: list[Intervals], work: pl.DataFrame, span: Activity) -> list[Phase]:
    summaries = []
    for code, (name, source) in enumerate(zip(labels.names, labels.sources, strict=True)):
        own = work.filter(pl.col("phase") == code)
        summaries.append(
            Phase(
                name=name,
                source=source,
                host_ns=length(host[code]),
                device_ns=int(own["dur_ns"].sum()),
                device_busy_ns=length(union(own["start_ns"].to_numpy(), own["end_ns"].to_numpy())),
                num_kernels=int((own["kind"] == Kind.KERNEL.value).sum()),
                host_share=length(clip(host[code], span.start_ns, span.end_ns)) / max(span.span_ns, 1),
            )
        )
    return summaries


def _steps(
    trace: RankTrace, labels: PhaseLabels, host: list[Intervals], work: pl.DataFrame
) -> list[StepPhases]:
    low, high = trace.steps["start_ns"].to_numpy(), trace.steps["end_ns"].to_numpy()
    on_host = [covered(intervals, low, high).tolist() for intervals in host]
    free = (high - low - covered(merge(*host), low, high)).tolist()
    on_device: list[dict[str, int]] = [{} for _ in free]
    launched = work.filter((pl.col("phase") >= 0) & pl.col("step").is_not_null())
    for step, phase, ns in (
        launched.group_by("step", "phase").agg(pl.col("dur_ns").sum()).sort("step", "phase").rows()
    ):
        on_device[step][labels.names[phase]] = ns
    return [
        StepPhases(
            name=name,
            dur_ns=dur,
            host_ns={
                label: on_host[code][step] for code, label in enumerate(labels.names) if on_host[code][step]
            },
            device_ns=on_device[step],
            other_ns=free[step],
        )
        for step, (name, dur) in enumerate(zip(trace.steps["name"], (high - low).tolist(), strict=True))
    ]
