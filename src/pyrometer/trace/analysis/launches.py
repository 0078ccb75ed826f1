"""Launches: how far the device lags behind the host, how deep its queues are, and whether launching is what limits.

Delay. Of device work the time from its launching call to its start: `after_call` from the end of the call, which is
negative where work starts before the call returns, and `after_start` from its start. Work without a launch in the trace
has none. A graph's launch counts once, with its first kernel.

Queue. Per stream, work is waiting from the start of its launching call until it starts (`depth` counts what waits, not
what runs). The queue is empty when nothing waits; time is measured from the first launch to the last end on the stream.

Waiting for launches. A device waits for a launch while nothing runs on any of its streams and nothing waits in its queues:
the host has not asked for more. This is found by intervals, over the span from its first work to its last.

Without device work the same question is asked of operators: time on the host in operators that are short, which is
mostly dispatch, and where they come from.
"""

from __future__ import annotations

import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.graphs.join import explained_work
from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.patterns import is_communication
from pyrometer.trace.program.call_sites import call_sites
from pyrometer.trace.records.device import (
    SHORTEST_NS,
    Dispatch,
    GraphLaunches,
    Launches,
    LaunchReport,
    Queue,
)
from pyrometer.trace.timing.distribution import distribution
from pyrometer.trace.timing.intervals import Intervals, clip, complement, length, merge, union
from pyrometer.trace.timing.queues import launched, queue_depth
from pyrometer.trace.trace import RankTrace

SHORT_NS = 10_000
"""Kernels and operators below this are short: launching or dispatching one costs about as much."""

FULL_QUEUE = 1024
"""Work that CUDA queues per stream before a launch blocks; the usual limit, not a documented one."""

LONG_DELAY_NS = 100_000
"""A delay above this means that work queued up, or that the device waited for something else."""


DISPATCHES = 5
"""An operator is short that takes no longer than so many that compute nothing."""


LONGEST_NS = 100_000
"""What takes longer is not, whatever the machine."""

VIEWS = (
    "aten::as_strided", "aten::view", "aten::select", "aten::slice", "aten::t", "aten::transpose", "aten::permute", "aten::expand",
    "aten::unsqueeze", "aten::squeeze", "aten::detach",
)  # fmt: skip
"""Operators whose time is all dispatch, at any size."""

FEWEST_VIEWS = 20


@analysis("launches")
def launches(trace: RankTrace) -> LaunchReport:
    """Launch delays, queue depths, short kernels and short operators, and the lines that issue them."""
    num_steps = trace.steps.height
    work = launched(trace)
    return LaunchReport(
        num_steps=num_steps,
        device=_device(trace, work, num_steps) if work.height else None,
        host=_host(trace, num_steps),
    )


def _device(trace: RankTrace, work: pl.DataFrame, num_steps: int) -> Launches:
    linked = work.filter(pl.col("call_start_ns").is_not_null())
    first = linked.sort("start_ns").unique("call", keep="first", maintain_order=True)
    kernels = work.filter(pl.col("kind") == Kind.KERNEL.value)
    calls = first["call_end_ns"] - first["call_start_ns"]
    after_call = first["start_ns"] - first["call_end_ns"]
    alone = linked.select("call", "kind", "dur_ns", "call_start_ns", "call_end_ns").filter(
        (pl.len().over("call") == 1) & (pl.col("kind") == Kind.KERNEL.value)
    )
    computing = trace.chosen(kernels, ~is_communication())
    short = computing.filter(pl.col("dur_ns") < SHORT_NS)
    span, waiting, starting = _waiting(linked, work)
    span_ns = trace.activity.span_ns
    return Launches(
        num_work=work.height,
        num_linked=linked.height,
        after_call=distribution(after_call),
        after_start=distribution(first["start_ns"] - first["call_start_ns"]),
        num_long_delays=int((after_call > LONG_DELAY_NS).sum()),
        call_ns=int(calls.sum()),
        call=distribution(calls),
        kernel=distribution(computing["dur_ns"]),
        num_short=short.height,
        short_ns=int(short["dur_ns"].sum()),
        num_shorter_than_launch=alone.filter(
            pl.col("dur_ns") < pl.col("call_end_ns") - pl.col("call_start_ns")
        ).height,
        kernels_per_s=kernels.height * 1e9 / span_ns if span_ns else None,
        launches_per_step=_per_step(trace, first["call"], num_steps),
        device_span_ns=span,
        waiting_ns=waiting,
        waiting_share=waiting / span if span else None,
        starting_ns=starting,
        queues=_queues(trace, work),
        graphs=_graphs(trace, linked),
        sites=call_sites(trace, short.select("event", time="dur_ns"), int(work["dur_ns"].sum()), num_steps),
    )


def _waiting(linked: pl.DataFrame, work: pl.DataFrame) -> tuple[int, int, int]:
    """Span, time without work that was asked for, and time without running work though some was asked for."""
    span = waiting = starting = 0
    for (device,), here in work.group_by("device", maintain_order=True):
        low, high = _ends(here)
        queued = linked.filter(pl.col("device").eq_missing(pl.lit(device, pl.Int32)))
        busy = _intervals(here, "start_ns", "end_ns")
        asked = clip(_intervals(queued, "call_start_ns", "start_ns"), low, high)
        idle = complement(busy, low, high)
        neither = complement(merge(busy, asked), low, high)
        span += high - low
        waiting += length(neither)
        starting += length(idle) - length(neither)
    return span, waiting, starting


def _ends(rows: pl.DataFrame) -> tuple[int, int]:
    low, high = rows["start_ns"].min(), rows["end_ns"].max()
    assert isinstance(low, int)
    assert isinstance(high, int)
    return low, high


def _intervals(rows: pl.DataFrame, start: str, end: str) -> Intervals:
    return union(rows[start].to_numpy(), rows[end].to_numpy())


def _queues(trace: RankTrace, work: pl.DataFrame) -> list[Queue]:
    """Every stream's queue, the busiest first."""
    ends = work.group_by("track").agg(
        pl.col("end_ns").max(), pl.col("call_start_ns").count().alias("num_launched")
    )
    steps = (
        queue_depth(trace)
        .join(ends, on="track", how="left")
        .with_columns(
            lasts=pl.max_horizontal(
                pl.col("ts_ns").shift(-1).over("track").fill_null(pl.col("end_ns")) - pl.col("ts_ns"), 0
            )
        )
    )
    rows = (
        steps.group_by("track")
        .agg(
            pl.col("device", "stream", "num_launched").first(),
            pl.col("depth").max().alias("max_depth"),
            (pl.col("depth") * pl.col("lasts")).sum().alias("weighted"),
            pl.col("lasts").sum().alias("observed_ns"),
            pl.col("lasts").filter(pl.col("depth") <= 0).sum().alias("empty_ns"),
            pl.col("lasts").filter(pl.col("depth") >= FULL_QUEUE).sum().alias("full_ns"),
        )
        .sort("num_launched", "track", descending=[True, False])
    )
    return [
        Queue(
            **{
                key: row[key]
                for key in (
                    "device",
                    "stream",
                    "num_launched",
                    "max_depth",
                    "observed_ns",
                    "empty_ns",
                    "full_ns",
                )
            },
            mean_depth=row["weighted"] / row["observed_ns"] if row["observed_ns"] else 0.0,
        )
        for row in rows.iter_rows(named=True)
    ]


def _graphs(trace: RankTrace, linked: pl.DataFrame) -> GraphLaunches | None:
    sizes = linked.group_by("call").agg(pl.len().alias("n")).filter(pl.col("n") > 1)["n"]
    if not len(sizes):
        return None
    total = int(sizes.sum())
    return GraphLaunches(
        num_launches=len(sizes),
        num_work=total,
        mean_work=total / len(sizes),
        num_explained=explained_work(trace).height,
    )


def _host(trace: RankTrace, num_steps: int) -> Dispatch:
    ops = trace.of_kind(Kind.CPU_OP).select(
        "event", "name", "dur_ns", "self_ns", "parent", "step", "track", "start_ns", "end_ns"
    )
    events = trace.events
    outer = ops.filter(events["op"].gather(ops["parent"]).is_null())
    dispatch_ns = _dispatch_ns(ops)
    limit = (
        SHORTEST_NS if dispatch_ns is None else min(max(DISPATCHES * dispatch_ns, SHORTEST_NS), LONGEST_NS)
    )
    short = outer.filter(pl.col("dur_ns") < limit)
    total = int(ops["self_ns"].sum())
    in_step = int(ops["step"].is_not_null().sum())
    short_ns = int(short["dur_ns"].sum())
    return Dispatch(
        num_ops=outer.height,
        num_nested=ops.height - outer.height,
        ops_per_step=in_step / num_steps if num_steps else None,
        op_ns=total,
        between_ns=_between(outer),
        own=distribution(ops["self_ns"]),
        dispatch_ns=dispatch_ns,
        short_limit_ns=limit,
        num_short=short.height,
        short_ns=short_ns,
        short_share=short_ns / total if total else None,
        own_short_share=int(ops["self_ns"].filter(ops["self_ns"] < limit).sum()) / total if total else None,
        sites=call_sites(trace, short.select("event", time="dur_ns"), total, num_steps),
    )


def _dispatch_ns(ops: pl.DataFrame) -> int | None:
    views = ops.filter(pl.col("name").is_in(VIEWS))["self_ns"]
    return int(views.median()) if len(views) >= FEWEST_VIEWS else None  # type: ignore[arg-type]  # of integers


def _between(outer: pl.DataFrame) -> int:
    gaps = outer.sort("track", "start_ns").select(
        gap=pl.col("start_ns").shift(-1).over("track") - pl.col("end_ns")
    )["gap"]
    return int(gaps.filter((gaps > 0) & (gaps < LONG_DELAY_NS)).sum())


def _per_step(trace: RankTrace, events: pl.Series, num_steps: int) -> float | None:
    if not num_steps:
        return None
    inside = trace.events["step"].gather(events.cast(pl.UInt32)).is_not_null()
    return int(inside.sum()) / num_steps
