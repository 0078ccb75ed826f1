"""Does the record show the steady state? Its cold start, and work that was in flight when recording began or ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyrometer.quantity import counted, format_percent, format_seconds
from pyrometer.trace.health.issue import LINKED, TOTALS, HealthIssue
from pyrometer.trace.steady.in_flight import started_before
from pyrometer.trace.steady.left_out import LeftOut, total_ns
from pyrometer.trace.steady.steady import steady
from pyrometer.trace.trace import RankTrace

TOLD = 3
"""Names that are told; of the others only the number."""


def cold_start(trace: RankTrace) -> Iterator[HealthIssue]:
    """Calls and steps that take long because they are the first."""
    found = steady(trace)
    cold = [entry for entry in found.left_out if entry.reason in {"first_call", "compilation", "first_steps"}]
    if cold:
        yield HealthIssue(
            code="cold_start",
            severity="warning",
            message=f"{_share(trace, cold)} cold start: {_listed(cold)}; figures leave it out: record a few steps later",
            count=sum(entry.count for entry in cold),
            share=total_ns(cold) / max(trace.activity.span_ns, 1),
        )
    if found.start_only:
        yield HealthIssue(
            code="cold_start_only",
            severity="warning",
            message=f"{_share(trace, found.start_only)} what first calls do: {_listed(found.start_only)}; nothing in the record "
            "tells what later steps take, so that figures contain it: record a few steps later",
            unreliable=[*TOTALS, *LINKED],
            count=sum(entry.count for entry in found.start_only),
            share=total_ns(found.start_only) / max(trace.activity.span_ns, 1),
        )


def _share(trace: RankTrace, entries: Sequence[LeftOut]) -> str:
    took = total_ns(entries)
    return f"{format_seconds(took * 1e-9)} ({format_percent(took / max(trace.activity.span_ns, 1))} of the record) are"


def _listed(entries: Sequence[LeftOut]) -> str:
    more = [f"{counted(len(entries) - TOLD, 'other name')}"] if len(entries) > TOLD else []
    return ", ".join([*(_told(entry) for entry in entries[:TOLD]), *more])


def _told(entry: LeftOut) -> str:
    longest = format_seconds(entry.longest_ns * 1e-9)
    several = f"{entry.count} × " if entry.count > 1 else ""
    usual = "" if not entry.usual_ns else f", else {format_seconds(entry.usual_ns * 1e-9)}"
    return f"{several}{entry.name} ({'up to ' if several else ''}{longest}{usual})"


def in_flight(trace: RankTrace) -> Iterator[HealthIssue]:
    """Device work that is not in the record, or without its launch, because it ran when recording began or ended."""
    for entry in steady(trace).left_out:
        if not entry.reason.startswith("in_flight"):
            continue
        is_start = entry.reason == "in_flight_at_start"
        share = entry.span_ns / max(trace.activity.span_ns, 1)
        yield HealthIssue(
            code="in_flight_at_start" if is_start else "in_flight_at_end",
            severity="warning",
            message=(_at_start if is_start else _at_end)(entry, share),
            count=entry.count,
            share=share,
        )
    if before := started_before(trace):
        until = format_seconds((before[1] - trace.activity.start_ns) * 1e-9)
        yield HealthIssue(
            code="launched_before",
            severity="info",
            message=f"the first {counted(before[0], 'device event')}, until {until} after the start, were launched before recording "
            "began: no operator is charged with them",
            count=before[0],
            share=before[0] / trace.device_work.height,
        )


def _at_start(entry: LeftOut, share: float) -> str:
    took, delay = format_seconds(entry.span_ns * 1e-9), format_seconds(entry.longest_ns * 1e-9)
    return (
        f"work was in flight when recording began: for {took} ({format_percent(share)} of the record) nothing is recorded on the "
        f"device while {counted(entry.count, 'launch')} waited, the first for {delay}; that is no idle time: the span begins with "
        "the first recorded work"
    )


def _at_end(entry: LeftOut, share: float) -> str:
    return (
        f"work was in flight when recording ended: {counted(entry.count, 'launch')} left no device event in the last "
        f"{format_seconds(entry.span_ns * 1e-9)} ({format_percent(share)} of the record); that is no idle time: the span ends with "
        "the last recorded work"
    )
