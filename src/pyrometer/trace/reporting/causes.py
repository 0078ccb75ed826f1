"""What the time of a trace comes from: the classic mistakes, each with its evidence and its line.

A cause is named only where its evidence is plain; every limit is a constant here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

from pyrometer.quantity import format_bytes, format_percent, significant
from pyrometer.record import Record, doc
from pyrometer.trace.program.where import Where
from pyrometer.trace.reporting.rank_report import RankReport

Code = Literal["data", "operator", "synchronisation", "churn", "dispatch", "function"]

DATA_SHARE = 0.1
"""Of the span, in which the step waits for its data."""

DOMINANT = 0.3
"""Of the span, that one operator or function takes on its own."""

WAITS_PER_STEP = 8
STALLED_SHARE = 0.05
"""Of the span, in which the host waits at one place, and a device has nothing to do afterwards."""

TURNOVER = 5.0
CHURN_BYTES = 16 * 2**20
"""Allocated and freed again in each step, at one place: many times the peak, and more than caches hold."""

OPS_PER_STEP = 1000
SHORT_SHARE = 0.2
"""Of the time in operators, in ones that are shorter than their own dispatch; on a device, of waiting for launches."""


class Cause(Record, frozen=True, kw_only=True):
    """One thing that the time comes from."""

    code: Code
    sentence: Annotated[str, doc("for people: what happens, how much, where")]
    where: Annotated[Where, doc("in the program, as far as the trace knows it")] = Where()


def find_causes(report: RankReport) -> list[Cause]:
    """The causes that one rank's report shows plainly; the largest function only where there is nothing better to say."""
    found = [cause for look in SIGNS if (cause := look(report)) is not None]
    last = None if found else _function(report)
    return found if last is None else [last]


def spot(place: Where) -> str:
    """A place within a sentence, empty where nothing is known.

    >>> spot(Where(file="src/train.py", line=12, function="step", op="aten::item")), spot(Where(module="encoder"))
    ('in step (train.py:12)', 'in module encoder')
    """
    if place.file is not None:
        return f"in {place.function} ({place.file.rpartition('/')[2]}:{place.line})"
    return f"in module {place.module}" if place.module else ""


def _data(report: RankReport) -> Cause | None:
    if report.breakdown_ns.data < DATA_SHARE * report.span_ns:
        return None
    most = report.critical_path.loading
    said = (
        f"loading is mostly {spot(most)}" if most.file is not None else "data is loaded while the step waits"
    )
    return Cause(code="data", sentence=said, where=most)


def _operator(report: RankReport) -> Cause | None:
    device = report.num_kernels > 0
    shares = {op.name: op.device_share if device else op.host_share for op in report.top_ops}
    name = max(shares, key=lambda op: shares[op], default="")
    if shares.get(name, 0.0) < DOMINANT:
        return None
    users = [line for line in report.top_lines if name in {op.name for op in line.top_ops}]
    line = max(users, key=lambda one: one.device_ns if device else one.self_ns, default=None)
    place = (
        Where() if line is None else Where(file=line.file, line=line.line, function=line.function, op=name)
    )
    return Cause(
        code="operator",
        sentence=f"{name} takes {format_percent(shares[name])} {spot(place)}".rstrip(),
        where=place,
    )


def _synchronisation(report: RankReport) -> Cause | None:
    waited, steps, span = report.synchronisation, max(len(report.steps), 1), max(report.span_ns, 1)
    dry = report.breakdown_ns.sync >= DOMINANT * span  # the host waits even while nothing runs
    for point in report.sync_points:
        held = (point.total_ns if dry else point.stalled_ns) / span
        often = point.num_calls / steps
        drained = (
            dry or point.device_idle_after_ns >= STALLED_SHARE * span
        )  # else it waits while a device is busy
        if (held >= STALLED_SHARE and drained) or (often >= WAITS_PER_STEP and waited.would_stall):
            times = f"called {often:,.4g}×{' per step' if report.steps else ''} {spot(point.where)}".rstrip()
            held_up = f"holds the host up for {format_percent(held)}"
            said = f"{point.name}, {times}, {'would wait for a device' if waited.would_stall else held_up}"
            return Cause(code="synchronisation", sentence=said, where=point.where)
    return None


def _churn(report: RankReport) -> Cause | None:
    for site in report.memory.sites:
        if site.churn_bytes_per_step >= CHURN_BYTES and (site.turnover or 0.0) >= TURNOVER:
            times = significant(site.turnover or 0.0, 2)
            what = f"{format_bytes(site.churn_bytes_per_step)} per step, {times}× the peak, come and go"
            by = f"with {site.where.op} " if site.where.op else ""
            return Cause(code="churn", sentence=f"{what} {by}{spot(site.where)}".rstrip(), where=site.where)
    return None


def _dispatch(report: RankReport) -> Cause | None:
    device, host = report.launches.device, report.launches.host
    if device is not None:
        per_step, share, sites = device.launches_per_step, device.waiting_share, device.sites
        said = "launches per step leave the device waiting for {share} of the time from its first work to its last"
    else:
        per_step, share, sites = host.ops_per_step, host.own_short_share, host.sites
        said = "operators per step, {share} of their time in ones below 10 µs"
    if (per_step or 0) < OPS_PER_STEP or (share or 0.0) < SHORT_SHARE:
        return None
    place = sites[0].where if sites else Where()
    most = f", mostly {spot(place)}" if spot(place) else ""
    return Cause(
        code="dispatch",
        sentence=f"{per_step:,.0f} {said.format(share=format_percent(share))}{most}",
        where=place,
    )


def _function(report: RankReport) -> Cause | None:
    device = report.num_kernels > 0
    shares = [
        (line.device_share if device else line.host_share, i) for i, line in enumerate(report.top_lines)
    ]
    share, i = max(shares, default=(0.0, 0))
    if not DOMINANT <= share <= 1:  # threads that run at once can take more than the whole: that says nothing
        return None
    line = report.top_lines[i]
    place = Where(file=line.file, line=line.line, function=line.function)
    return Cause(code="function", sentence=f"{format_percent(share)} {spot(place)}", where=place)


SIGNS: tuple[Callable[[RankReport], Cause | None], ...] = (
    _data,
    _churn,
    _synchronisation,
    _dispatch,
    _operator,
)
"""The most telling first: a large operator may be all that there is to do."""
