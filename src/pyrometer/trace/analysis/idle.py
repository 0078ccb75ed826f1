"""Idle time: each gap in the work of a device, why the device had drained, and what the host did meanwhile.

A device is idle when no kernel, copy or fill runs on any of its streams. Of the idle time within the span of the trace
are set apart: what lies before the first and after the last work of a device (leading, trailing), and gaps that are at
least half covered by the profiler's own overhead. All the rest is attributed, gap by gap, on two axes: the cause
(`pyrometer.trace.timing.gaps.device_gaps`) and what the thread that launched the next work did most of the time
(`pyrometer.trace.timing.host_time.HOST_KINDS`). Several devices add up.

Without device work, idle means that no thread ran a collective, or an operator outside the data loader. Such gaps have
the cause `no_operator` and are attributed on the main thread, the one that runs the most operators.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
import polars as pl

from pyrometer.place import Place
from pyrometer.record import Record, doc
from pyrometer.trace.analysis.launches import SHORT_NS
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.linking.steps import step_of
from pyrometer.trace.program.where import where
from pyrometer.trace.rows import IntArray, pick, row_numbers
from pyrometer.trace.timing.gaps import (
    ISSUING_NS,
    TURNAROUND_NS,
    device_gaps,
    gaps_between,
    operator_gaps,
    profiler_overhead,
)
from pyrometer.trace.timing.host_time import HOST_KINDS, HostTime, host_time
from pyrometer.trace.timing.intervals import covered
from pyrometer.trace.timing.step_windows import step_windows
from pyrometer.trace.trace import RankTrace


class HostActivity(Record, frozen=True, kw_only=True):
    """What the host did during idle time."""

    kind: Annotated[str, doc("; ".join(HOST_KINDS))]
    name: Annotated[str | None, doc("operator, function, call or annotation")] = None
    total_ns: Annotated[int, doc("how long, within the gap or gaps")] = 0


class IdleGap(Record, frozen=True, kw_only=True):
    """One gap."""

    start_ns: int
    dur_ns: int
    device: Annotated[int | None, doc("null without device work")]
    cause: Annotated[
        str,
        doc(
            "sync_drain, launch_starvation, between_collectives, turnaround, dependency, unknown; or no_operator"
        ),
    ]
    host: HostActivity
    where: Annotated[Place, doc("place of what the host did, else of the launch that ended the gap")]
    share: Annotated[float, doc("of all attributed idle time")]
    step: Annotated[int | None, doc("row of the steps in which the gap begins")] = None
    previous: Annotated[str | None, doc("device work before the gap")] = None
    previous_ns: Annotated[int | None, doc("how long that ran")] = None
    next: Annotated[str | None, doc("device work after the gap")] = None


class IdleGroup(Record, frozen=True, kw_only=True):
    """All gaps of one cause in which the host mostly did one kind of thing."""

    cause: str
    host: str
    num_gaps: int
    total_ns: int
    share: Annotated[float, doc("of all attributed idle time")]
    after_short_ns: Annotated[
        int, doc("of total_ns: in gaps up to 1 ms that follow a kernel below 10 µs")
    ] = 0
    doing: Annotated[list[HostActivity], doc("what it did the longest, at most three")] = []


class StreamIdle(Record, frozen=True, kw_only=True):
    """Gaps between consecutive work of one stream, by why the next work had not begun."""

    device: int
    stream: int
    num_gaps: int
    idle_ns: Annotated[int, doc("sum of the four that follow")]
    host_wait_ns: Annotated[int, doc("the next work was launched only after the work before it had ended")]
    kernel_wait_ns: Annotated[int, doc("launched in time, and at most 30 µs: the device's turn-around")]
    other_wait_ns: Annotated[int, doc("launched in time, and waited longer: for an event or another stream")]
    unknown_ns: Annotated[int, doc("the launch of the next work is not in the trace")]


class Idle(Record, frozen=True, kw_only=True):
    """Idle time of one rank; `idle_ns` is the sum of `attributed_ns` and of the three that are set apart."""

    of: Annotated[Literal["device", "host"], doc("host: in a trace without device work")]
    idle_ns: Annotated[int, doc("within the span, summed over devices")]
    attributed_ns: Annotated[int, doc("sum of all gaps")]
    leading_ns: Annotated[int, doc("before the first work of a device")] = 0
    trailing_ns: Annotated[int, doc("after the last work of a device")] = 0
    profiler_ns: Annotated[int, doc("gaps that the profiler itself caused")] = 0
    after_short_ns: Annotated[
        int,
        doc(
            "of attributed_ns: in gaps up to 1 ms that follow a kernel below 10 µs, which ended before more was launched"
        ),
    ] = 0
    num_gaps: int = 0
    gaps: Annotated[list[IdleGap], doc("the longest, the longest first")] = []
    num_other_gaps: Annotated[int, doc("gaps that are not listed")] = 0
    other_gaps_ns: int = 0
    groups: Annotated[
        list[IdleGroup], doc("all gaps by cause and by what the host did, the largest first")
    ] = []
    host_ns: Annotated[
        dict[str, int], doc("what the host did in all gaps, to the ns; sums to attributed_ns")
    ] = {}
    by_stream: list[StreamIdle] = []

    @property
    def between_collectives_ns(self) -> int:
        """Of attributed_ns: the host issues one collective after another."""
        return sum(group.total_ns for group in self.groups if group.cause == "between_collectives")


@analysis("idle")
def idle(trace: RankTrace, *, top: int = 20) -> Idle:
    """Idle time, attributed: why the device drained, and what the host did meanwhile."""
    rows, leading, trailing = _device_idle(trace) if trace.activity.has_device else _host_idle(trace)
    low, high = rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
    slowed = 2 * covered(profiler_overhead(trace), low, high) >= high - low
    profiler = int((high - low)[slowed].sum())
    gaps = rows.filter(pl.Series(~slowed))
    did = host_time(
        trace, _thread(trace, gaps), gaps["start_ns"].to_numpy().copy(), gaps["end_ns"].to_numpy().copy()
    )
    gaps = gaps.with_columns(
        dur_ns=pl.col("end_ns") - pl.col("start_ns"),
        after_short=_after_short(trace, gaps),
        gap=pl.int_range(pl.len()),
        host=pl.Series([HOST_KINDS[i] for i in did.kind.tolist()], dtype=pl.String),
    )
    total = int(gaps["dur_ns"].sum())
    listed = _list(trace, gaps.sort("dur_ns", descending=True, maintain_order=True).head(top), did, total)
    rest = total - sum(gap.dur_ns for gap in listed)
    return Idle(
        of="device" if trace.activity.has_device else "host",
        idle_ns=total + profiler + leading + trailing,
        attributed_ns=total,
        leading_ns=leading,
        trailing_ns=trailing,
        profiler_ns=profiler,
        after_short_ns=int(gaps.filter("after_short")["dur_ns"].sum()),
        num_gaps=gaps.height,
        gaps=listed,
        num_other_gaps=gaps.height - len(listed),
        other_gaps_ns=rest,
        groups=_group(gaps, did, total),
        host_ns=dict(zip(HOST_KINDS, did.ns.sum(axis=0).tolist(), strict=True)),
        by_stream=_by_stream(trace),
    )


def _work(trace: RankTrace) -> pl.DataFrame:
    return trace.device_work.with_columns(pl.col("device").fill_null(-1), pl.col("stream").fill_null(-1))


def _device_idle(trace: RankTrace) -> tuple[pl.DataFrame, int, int]:
    edges = _work(trace).group_by("device").agg(first=pl.col("start_ns").min(), last=pl.col("end_ns").max())
    low, high = trace.activity.start_ns, trace.activity.end_ns
    leading = int((edges["first"].clip(low, high) - low).sum())
    trailing = int((high - edges["last"].clip(low, high)).sum())
    within = [pl.col(name).clip(low, high) for name in ("start_ns", "end_ns")]
    gaps = device_gaps(trace).with_columns(within).filter(pl.col("end_ns") > pl.col("start_ns"))
    return gaps, leading, trailing


def _host_idle(trace: RankTrace) -> tuple[pl.DataFrame, int, int]:
    idle_time = operator_gaps(trace)
    nothing = pl.lit(None, pl.Int32)
    gaps = pl.DataFrame({"start_ns": idle_time.start, "end_ns": idle_time.end}).with_columns(
        device=nothing, previous=nothing, next=nothing, launch=nothing, cause=pl.lit("no_operator")
    )
    return gaps, 0, 0


def _after_short(trace: RankTrace, gaps: pl.DataFrame) -> pl.Series:
    """Which gaps follow a kernel that was too short to hide its successor's launch, and are no longer than launching is."""
    short = trace.events.select(is_kind(Kind.KERNEL) & (pl.col("dur_ns") < SHORT_NS)).to_series()
    follows = short.gather(gaps["previous"].cast(pl.UInt32)).fill_null(value=False)
    return follows & (gaps["end_ns"] - gaps["start_ns"] <= ISSUING_NS)


def _thread(trace: RankTrace, gaps: pl.DataFrame) -> IntArray:
    """The thread that launched the work after each gap; where that is not known, the one that works the most."""
    launching = trace.events["track"].gather(gaps["launch"])
    work = (Kind.RUNTIME, Kind.DRIVER) if trace.activity.has_device else (Kind.CPU_OP,)
    for kinds in (work, (Kind.CPU_OP,), (Kind.PYTHON_FUNCTION,), (Kind.USER_ANNOTATION,)):
        busiest = trace.of_kind(*kinds)["track"].mode()
        if len(busiest):
            return launching.fill_null(busiest.min()).to_numpy().astype(np.int64)
    return launching.fill_null(0).to_numpy().astype(np.int64)


def _list(trace: RankTrace, gaps: pl.DataFrame, did: HostTime, total: int) -> list[IdleGap]:
    main = did.doing.filter(pl.col("window").is_in(gaps["gap"].implode())).unique(
        "window", keep="first", maintain_order=True
    )
    doing = {row["window"]: row for row in main.iter_rows(named=True)}
    steps = step_of(step_windows(trace), gaps["start_ns"].to_numpy()).tolist()
    names, durations = trace.events["name"], trace.events["dur_ns"]
    listed = []
    for row, step in zip(gaps.iter_rows(named=True), steps, strict=True):
        most = doing.get(row["gap"])
        event = most["event"] if most else row["launch"]
        host = HostActivity(
            kind=row["host"],
            name=most["name"] if most else None,
            total_ns=int(did.ns[row["gap"], HOST_KINDS.index(row["host"])]),
        )
        listed.append(
            IdleGap(
                start_ns=row["start_ns"],
                dur_ns=row["dur_ns"],
                device=row["device"],
                cause=row["cause"],
                host=host,
                where=Place() if event is None else where(trace, event),
                share=row["dur_ns"] / total,
                step=step if step >= 0 else None,
                previous=None if row["previous"] is None else names[row["previous"]],
                previous_ns=None if row["previous"] is None else durations[row["previous"]],
                next=None if row["next"] is None else names[row["next"]],
            )
        )
    return listed


def _group(gaps: pl.DataFrame, did: HostTime, total: int) -> list[IdleGroup]:
    keys = gaps.select("cause", "host", window="gap")
    names = (
        did.doing.join(keys, on="window")
        .group_by("cause", "host", "name")
        .agg(pl.col("ns").sum())
        .sort("ns", "name", descending=[True, False])
    )
    groups = gaps.group_by("cause", "host").agg(
        pl.len(),
        pl.col("dur_ns").sum(),
        pl.col("dur_ns").filter("after_short").sum().alias("after_short_ns"),
    )
    return [
        IdleGroup(
            cause=cause,
            host=host,
            num_gaps=number,
            total_ns=ns,
            share=ns / total,
            after_short_ns=after_short,
            doing=[
                HostActivity(kind=host, name=name, total_ns=amount)
                for name, amount in names.filter((pl.col("cause") == cause) & (pl.col("host") == host))
                .select("name", "ns")
                .head(3)
                .iter_rows()
            ],
        )
        for cause, host, number, ns, after_short in groups.sort(
            "dur_ns", "cause", "host", descending=[True, False, False]
        ).iter_rows()
    ]


def _by_stream(trace: RankTrace) -> list[StreamIdle]:
    found = []
    streams = _work(trace).partition_by("device", "stream", as_dict=True)
    for (device, stream), work in sorted(streams.items()):
        gaps = gaps_between(work)
        gaps = gaps.with_columns(launched_ns=pick(trace.events["start_ns"], row_numbers(gaps["launch"])))
        dur = pl.col("end_ns") - pl.col("start_ns")
        late = pl.col("launched_ns") > pl.col("start_ns")
        orphan = pl.col("launched_ns").is_null()
        row = gaps.select(
            idle_ns=dur.sum(),
            host_wait_ns=dur.filter(late).sum(),
            kernel_wait_ns=dur.filter(~late & (dur <= TURNAROUND_NS)).sum(),
            other_wait_ns=dur.filter(~late & (dur > TURNAROUND_NS)).sum(),
            unknown_ns=dur.filter(orphan).sum(),
        ).row(0, named=True)
        found.append(StreamIdle(device=device, stream=stream, num_gaps=gaps.height, **row))
    return found
