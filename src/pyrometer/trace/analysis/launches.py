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

from typing import Annotated

import polars as pl

from pyrometer.record import Record, doc
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.graphs.join import explained_work
from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.patterns import is_communication
from pyrometer.trace.program.call_sites import CallSite, call_sites
from pyrometer.trace.timing.distribution import Distribution, distribution
from pyrometer.trace.timing.intervals import Intervals, clip, complement, length, merge, union
from pyrometer.trace.timing.queues import launched, queue_depth
from pyrometer.trace.trace import RankTrace

SHORT_NS = 10_000
"""Kernels and operators below this are short: launching or dispatching one costs about as much."""

FULL_QUEUE = 1024
"""Work that CUDA queues per stream before a launch blocks; the usual limit, not a documented one."""

LONG_DELAY_NS = 100_000
"""A delay above this means that work queued up, or that the device waited for something else."""


class Queue(Record, frozen=True, kw_only=True):
    """The queue of one stream."""

    device: int | None = None
    stream: int | None = None
    num_launched: Annotated[int, doc("pieces of work with a launch in the trace")]
    max_depth: Annotated[int, doc("most work waiting at a time")]
    mean_depth: Annotated[float, doc("over time")]
    observed_ns: Annotated[int, doc("first launch to last end")]
    empty_ns: Annotated[int, doc("time in which nothing waits; the stream may be running its last work")]
    full_ns: Annotated[int, doc("time with 1024 or more waiting, when a launch blocks")] = 0


class GraphLaunches(Record, frozen=True, kw_only=True):
    """Calls that launch several pieces of work."""

    num_launches: int
    num_work: int
    mean_work: Annotated[float, doc("pieces of work per launch")]
    num_explained: Annotated[
        int, doc("pieces of work whose operators are known from the capture of their graph")
    ] = 0


class Launches(Record, frozen=True, kw_only=True):
    """Launching on devices; see the module for what is counted."""

    num_work: Annotated[int, doc("kernels, copies and fills")]
    num_linked: Annotated[int, doc("of these with a launch in the trace")]
    after_call: Annotated[Distribution | None, doc("start of the work − end of its call")] = None
    after_start: Annotated[Distribution | None, doc("start of the work − start of its call")] = None
    num_long_delays: Annotated[int, doc("after_call above 100 µs")] = 0
    call_ns: Annotated[int, doc("host time in launching calls")] = 0
    call: Annotated[Distribution | None, doc("duration of launching calls")] = None
    kernel: Annotated[Distribution | None, doc("duration of kernels, communication left out")] = None
    num_short: Annotated[int, doc("of these kernels: below 10 µs")] = 0
    short_ns: Annotated[int, doc("their device time")] = 0
    num_shorter_than_launch: Annotated[int, doc("kernels that took less than their launching call")] = 0
    kernels_per_s: Annotated[float | None, doc("over the span of the trace")] = None
    launches_per_step: Annotated[float | None, doc("launching calls; mean over the steps")] = None
    device_span_ns: Annotated[int, doc("first device work to the last, added over devices")] = 0
    waiting_ns: Annotated[
        int, doc("of that: nothing runs on the device and nothing is queued; the host has not launched more")
    ] = 0
    waiting_share: float | None = None
    starting_ns: Annotated[
        int, doc("nothing runs, though work is queued: launch latency, or waiting for another stream")
    ] = 0
    queues: list[Queue] = []
    graphs: GraphLaunches | None = None
    sites: Annotated[list[CallSite], doc("where short kernels come from, most device work first")] = []


DISPATCHES = 5
"""An operator is short that takes no longer than so many that compute nothing."""

SHORTEST_NS, LONGEST_NS = 10_000, 100_000
"""Between these lies what counts as short, whatever the machine."""

VIEWS = (
    "aten::as_strided", "aten::view", "aten::select", "aten::slice", "aten::t", "aten::transpose", "aten::permute", "aten::expand",
    "aten::unsqueeze", "aten::squeeze", "aten::detach",
)  # fmt: skip
"""Operators whose time is all dispatch, at any size."""

FEWEST_VIEWS = 20


class Dispatch(Record, frozen=True, kw_only=True):
    """Operators on the host: is it dispatch that takes the time?"""

    num_ops: Annotated[int, doc("operators that no other operator called")]
    num_nested: Annotated[int, doc("operators that another called")]
    ops_per_step: Annotated[float | None, doc("both together; mean over the steps")] = None
    op_ns: Annotated[int, doc("host time in operators, of all threads")]
    between_ns: Annotated[
        int, doc("between outermost operators of a thread that follow within 100 µs: Python and dispatch")
    ] = 0
    own: Annotated[Distribution | None, doc("an operator's own time, nested ones excluded")] = None
    dispatch_ns: Annotated[
        int | None,
        doc("median own time of operators that compute nothing, under the profiler; null with fewer than 20"),
    ] = None
    short_limit_ns: Annotated[
        int, doc("below this an operator counts as short: 5 times dispatch_ns, from 10 to 100 µs")
    ] = SHORTEST_NS
    num_short: Annotated[int, doc("outermost operators below short_limit_ns in all")] = 0
    short_ns: Annotated[int, doc("their time")] = 0
    short_share: Annotated[float | None, doc("of the host time in operators")] = None
    own_short_share: Annotated[
        float | None, doc("of the host time in operators: own times below short_limit_ns, of nested ones too")
    ] = None
    sites: Annotated[list[CallSite], doc("where short operators come from, most time first")] = []


class LaunchReport(Record, frozen=True, kw_only=True):
    """Launching on devices, and dispatching on the host."""

    num_steps: int
    device: Annotated[Launches | None, doc("absent without device work")] = None
    host: Dispatch


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
    computing = kernels.filter(~is_communication())
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
