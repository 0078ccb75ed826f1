"""Idle time: each gap in the work of a device, why the device had drained, and what the host did meanwhile.

A device is idle when no kernel, copy or fill runs on any of its streams. Of the idle time within the span of the trace
are set apart: what lies before the first and after the last work of a device (leading, trailing), and gaps that are at
least half covered by the profiler's own overhead. All the rest is attributed, gap by gap, on two axes: the cause
(`pyrometer.trace.timing.gaps.device_gaps`) and what the thread that launched the next work did most of the time
(`pyrometer.trace.records.waiting.HOST_KINDS`). Several devices add up.

Without device work, idle means that no thread ran a collective, or an operator outside the data loader. Such gaps have
the cause `no_operator` and are attributed on the main thread, the one that runs the most operators.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.place import Place
from pyrometer.trace.analysis.launches import SHORT_NS
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.linking.steps import step_of
from pyrometer.trace.program.where import where
from pyrometer.trace.records.waiting import HOST_KINDS, HostActivity, Idle, IdleGap, IdleGroup, StreamIdle
from pyrometer.trace.rows import IntArray, pick, row_numbers
from pyrometer.trace.timing.gaps import (
    ISSUING_NS,
    TURNAROUND_NS,
    device_gaps,
    gaps_between,
    operator_gaps,
    profiler_overhead,
)
from pyrometer.trace.timing.host_time import HostTime, host_time
from pyrometer.trace.timing.intervals import covered
from pyrometer.trace.timing.step_windows import step_windows
from pyrometer.trace.trace import RankTrace


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
        busiest = trace.bounds_of(*kinds)["track"].mode()
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
