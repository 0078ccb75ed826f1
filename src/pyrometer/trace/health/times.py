"""Can the times be right? Clocks, stray and endless events, overlap without nesting, the profiler's own time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from pyrometer.quantity import format_percent, format_seconds
from pyrometer.trace.health.issue import TOTALS, HealthIssue
from pyrometer.trace.kinds import DEVICE_WORK, HOST, Kind
from pyrometer.trace.linking.tree import nest
from pyrometer.trace.timing.intervals import intersect, length, union
from pyrometer.trace.trace import RankTrace

OVERHEAD_SHARE = 0.05
EARLY_NS = 1000
EARLY_SHARE = 0.01
NESTING_SHARE = 0.01
LONGEST_NS = 3_600_000_000_000
STRAY_SHARE = 0.01
SILENT_SHARE = 0.9


def clocks(trace: RankTrace) -> Iterator[HealthIssue]:
    """Device work that begins before the call that launched it."""
    linked = trace.device_work.filter(pl.col("parent").is_not_null())
    launch = trace.events["start_ns"].gather(linked["parent"].cast(pl.UInt32))
    ahead = (launch - linked["start_ns"]).to_numpy()
    early = int((ahead > EARLY_NS).sum())
    if early:
        share = early / linked.height
        yield HealthIssue(
            code="clock_regression",
            severity="warning" if share > EARLY_SHARE else "info",
            message=f"{early} of {linked.height} device events begin before the call that launched them, by up to "
            f"{format_seconds(float(ahead.max()) * 1e-9)}: the device's clock was converted wrongly; launch delays and idle "
            "causes are off by as much; a newer driver or torch aligns them",
            unreliable=["launches", "idle", "critical_path", "what_if"] if share > EARLY_SHARE else [],
            count=early,
            share=share,
        )


def strays(trace: RankTrace) -> Iterator[HealthIssue]:
    """A few events far from all others: times clamped to 0, or a wrong clock."""
    events = trace.bounds_of(*HOST, *DEVICE_WORK)
    if events.height < 2 / STRAY_SHARE:
        return
    start, reach = events["start_ns"].to_numpy(), np.maximum.accumulate(events["end_ns"].to_numpy())
    silent = start[1:] - reach[:-1]
    at = int(np.argmax(silent)) + 1
    few = min(at, events.height - at)
    if silent[at - 1] > SILENT_SHARE * (reach[-1] - start[0]) and few <= STRAY_SHARE * events.height:
        yield HealthIssue(
            code="stray_events",
            severity="error",
            message=f"{few} events lie {format_seconds(float(silent[at - 1]) * 1e-9)} away from all others "
            f"({events['name'][0 if few == at else events.height - 1]}): their times are wrong, and they stretch the "
            "span; idle time is false; select the steps, or export the range without them",
            unreliable=[*TOTALS, "critical_path"],
            count=few,
            share=few / events.height,
        )


def durations(trace: RankTrace) -> Iterator[HealthIssue]:
    """Device work whose end cannot be right."""
    endless = trace.device_work.filter(pl.col("dur_ns") >= LONGEST_NS)
    if endless.height:
        yield HealthIssue(
            code="impossible_duration",
            severity="error",
            message=f"{endless.height} device events last longer than an hour ({endless['name'][0]}): their ends were not "
            "recorded, and busy time is false; record again",
            unreliable=[*TOTALS, "critical_path", "roofline"],
            count=endless.height,
        )


def overhead(trace: RankTrace) -> Iterator[HealthIssue]:
    """What recording itself took."""
    marks = trace.of_kind(Kind.OVERHEAD)
    span = union(np.array([trace.activity.start_ns]), np.array([trace.activity.end_ns]))
    spent = length(intersect(union(marks["start_ns"].to_numpy(), marks["end_ns"].to_numpy()), span))
    share = spent / max(trace.activity.span_ns, 1)
    if share > OVERHEAD_SHARE:
        yield HealthIssue(
            code="profiler_overhead",
            severity="warning",
            message=f"the profiler itself took {format_seconds(spent * 1e-9)} ({format_percent(share)} of the span); host "
            "times and idle time contain it; warm the schedule up for longer, and record less (no stacks, no memory)",
            unreliable=["breakdown", "idle", "operators"],
            count=marks.height,
            share=share,
        )
    calls = trace.number_of(Kind.PYTHON_FUNCTION)
    if calls:
        yield HealthIssue(
            code="python_tracer",
            severity="info",
            message=f"{calls:,} Python calls were recorded, each of which costs about a microsecond: the host looks slower than "
            "it is; compare host times only with traces that have stacks, and take absolute times without them",
            count=calls,
        )


def nesting(trace: RankTrace) -> Iterator[HealthIssue]:
    """Host events that overlap on their thread without nesting."""
    spans = trace.of_kind(Kind.USER_ANNOTATION)
    crossing = _crossings(spans)
    if crossing:
        yield HealthIssue(
            code="overlapping_spans",
            severity="info",
            message=f"{crossing} of {spans.height} user annotations overlap another on their thread without nesting; time in "
            "both goes to the one that began first, and viewers drop them; --export puts them on lanes of their own",
            count=crossing,
            share=crossing / spans.height,
        )
    violations = trace.links.num_nesting_violations
    host = trace.number_of(*HOST)
    if violations > crossing:
        share = violations / host
        # Spans are opened and closed inside of functions, so that with stacks they always cross some of them.
        calls = trace.bounds_of(Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER)
        is_grave = _crossings(calls) > NESTING_SHARE * host
        yield HealthIssue(
            code="nesting_violations",
            severity="warning" if is_grave else "info",
            message=f"{violations:,} of {host:,} host events ({format_percent(share)}) overlap another without nesting; self "
            "times still sum to wall time, but who called whom is uncertain there; record without stacks to avoid it",
            unreliable=["operators", "call_tree"] if is_grave else [],
            count=violations,
            share=share,
        )


def _crossings(spans: pl.DataFrame) -> int:
    """Spans that begin within another one of their thread and end after it."""
    track, start, end = (spans[name].to_numpy() for name in ("track", "start_ns", "end_ns"))
    return nest(track.astype(np.int64), start, end).violations


def streams(trace: RankTrace) -> Iterator[HealthIssue]:
    """Kernels that overlap on one stream."""
    kernels = trace.of_kind(Kind.KERNEL)
    before = pl.col("end_ns").cum_max().shift().over("device", "stream")
    overlapping = kernels.filter(pl.col("start_ns") < before).height
    if overlapping:
        yield HealthIssue(
            code="stream_overlap",
            severity="info",
            message=f"{overlapping} of {kernels.height} kernels begin before the one ahead of them on their stream has ended "
            "(programmatic dependent launch, or rounding): durations of kernels sum to more than busy time; use busy time",
            count=overlapping,
            share=overlapping / kernels.height,
        )
