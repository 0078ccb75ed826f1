"""Synchronisation points: which call, which line, how long it held up the host, and what it cost the device.

A call waits when its name says so or when it is seen to (`pyrometer.trace.timing.waits.find_waits`). It is named after the
operator that made the user's program wait: `aten::item`, not the `aten::_local_scalar_dense` and the copy inside.
Of a call's time, `stalled_ns` is what lies beside work of a device: waiting; the rest is the price of the call.
When the device drains during a call, the idle time that follows is counted as what the call cost the device.

`cudaDeviceSynchronize` at the end of a trace, after the last operator and with no place of its own, is the profiler's
and is left out, but counted.

Without device work the operators `aten::item` and their kin are listed: they cost little on the CPU, and each would
wait for a device.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.kinds import Kind
from pyrometer.trace.program.rollup import above
from pyrometer.trace.program.where import places_of, where
from pyrometer.trace.records.waiting import StreamWait, Synchronisation, SyncPoint
from pyrometer.trace.rows import IntArray, row_numbers
from pyrometer.trace.timing.gaps import device_gaps
from pyrometer.trace.timing.intervals import covered
from pyrometer.trace.timing.waits import find_waits
from pyrometer.trace.trace import RankTrace

SYNCHRONISING = (
    r"^aten::(item|_local_scalar_dense|is_nonzero|nonzero|nonzero_numpy|masked_select|equal|allclose|_unique2|unique_dim"
    r"|unique_consecutive|unique_dim_consecutive|repeat_interleave|bincount|to|_to_copy|_to_cpu|copy_|cpu|pin_memory"
    r"|index|index_put_|_index_put_impl_|tolist|numpy|argwhere|combinations|_linalg_check_errors)$"
)
"""Operators that wait for a device, or do so for some arguments; a call inside is named after the outermost of them."""

SCALARS = r"^aten::(item|_local_scalar_dense|is_nonzero)$"
"""Operators that read a scalar on the host, and so would wait for a device; within another operator of torch they belong
to what that one does on the CPU."""

OPTIMIZER_STEP = "Optimizer.step#"
"""What an optimizer reads within its update, such as the number of its steps, lies on the host with a device, too."""

PLACE = ("file", "line", "function", "module", "op")


@analysis("sync_points")
def sync_points(trace: RankTrace) -> Synchronisation:
    """Synchronisation points by place: which call, how long it held up the host, what it cost the device."""
    if not trace.activity.has_device:
        return _scalars(trace)
    waits = find_waits(trace)
    waits = waits.with_columns(
        call=pl.col("name"),
        trigger=_triggers(trace, waits["event"].to_list()),
        dur_ns=pl.col("end_ns") - pl.col("start_ns"),
        stalled_ns=covered(trace.activity.device, waits["start_ns"].to_numpy(), waits["end_ns"].to_numpy()),
        after_ns=_idle_after(trace, waits),
    )
    last = trace.bounds_of(Kind.CPU_OP)["start_ns"].max()
    placed = waits.hstack(places_of(trace, waits["trigger"]))
    by_profiler = (
        pl.col("name").str.contains("Synchronize")
        & (pl.col("start_ns") > (last if isinstance(last, int) else 0))
        & pl.col("file").is_null()
        & pl.col("op").is_null()
    )
    return Synchronisation(
        points=_points(trace, placed.filter(~by_profiler)),
        stream_waits=_stream_waits(trace),
        **_totals(placed.filter(~by_profiler)),
        num_profiler_calls=placed.filter(by_profiler).height,
    )


class _Totals(TypedDict):
    num_calls: int
    total_ns: int
    stalled_ns: int
    device_idle_after_ns: int


def _totals(placed: pl.DataFrame) -> _Totals:
    return {
        "num_calls": placed["trigger"].n_unique(),
        "total_ns": int(placed["dur_ns"].sum()),
        "stalled_ns": int(placed["stalled_ns"].sum()),
        "device_idle_after_ns": int(placed["after_ns"].sum()),
    }


def _points(trace: RankTrace, placed: pl.DataFrame) -> list[SyncPoint]:
    work = trace.device_work.sort("end_ns", maintain_order=True)
    ends, names = work["end_ns"].to_numpy(), work["name"]
    titles = trace.events["name"].gather(placed["trigger"]).alias("title")
    points = []
    for group in placed.with_columns(titles).partition_by("title", *PLACE, maintain_order=True):
        longest = group.sort("dur_ns", descending=True, maintain_order=True).row(0, named=True)
        thread = trace.tracks.filter(pl.col("track") == longest["track"])
        row = int(np.searchsorted(ends, longest["end_ns"], side="right")) - 1
        points.append(
            SyncPoint(
                name=longest["title"],
                calls=group["call"].drop_nulls().unique(maintain_order=True).to_list(),
                scope=longest["scope"],
                waited_for=names[row] if row >= 0 and ends[row] >= longest["start_ns"] else None,
                thread=(thread["thread_name"][0] or thread["tid"][0]) if thread.height else None,
                **_totals(group),
                max_ns=int(group.group_by("trigger").agg(pl.col("dur_ns").sum())["dur_ns"].max()),  # type: ignore[arg-type]
                where=where(trace, longest["trigger"]),
            )
        )
    return sorted(points, key=lambda point: (-point.stalled_ns, -point.total_ns, -point.num_calls))


def _triggers(trace: RankTrace, calls: list[int]) -> pl.Series:
    """The outermost of the synchronising operators that directly enclose each call; else the call itself."""
    parent = trace.parent
    op = row_numbers(trace.events["op"])
    waiting = trace.events["name"].str.contains(SYNCHRONISING).fill_null(value=False).to_numpy()
    triggers = []
    for call in calls:
        at, best = int(op[call]), call
        while at >= 0 and waiting[at]:
            best = at
            above = int(parent[at])
            at = int(op[above]) if above >= 0 else -1
        triggers.append(best)
    return pl.Series(triggers, dtype=pl.UInt32)


def _idle_after(trace: RankTrace, waits: pl.DataFrame) -> IntArray:
    """Idle time that began during each call; a gap counts once, for the call that began last."""
    gaps = device_gaps(trace).filter(pl.col("cause") == "sync_drain")
    after = np.zeros(waits.height, np.int64)
    start, end = waits["start_ns"].to_numpy(), waits["end_ns"].to_numpy()
    last = np.searchsorted(start, gaps["start_ns"].to_numpy(), side="right") - 1
    for row, low, high in zip(last.tolist(), gaps["start_ns"], gaps["end_ns"], strict=True):
        while end[row] < low:  # a call on another thread that began later, and is over
            row -= 1  # noqa: PLW2901
        after[row] += high - low
    return after


def _stream_waits(trace: RankTrace) -> list[StreamWait]:
    waits = trace.detail("syncs").filter(pl.col("sync_kind").fill_null(pl.col("name")) == "Stream Wait Event")
    groups = waits.group_by(pl.col("device", "stream").fill_null(-1), "wait_stream").len()
    return [
        StreamWait(device=device, stream=stream, waits_for_stream=other, num_waits=number)
        for device, stream, other, number in groups.sort(
            "len", "device", "stream", "wait_stream", descending=[True, False, False, False]
        ).iter_rows()
    ]


def _scalars(trace: RankTrace) -> Synchronisation:
    ops = trace.of_kind(Kind.CPU_OP).filter(pl.col("name").str.contains(SCALARS))
    outer = trace.events["op"].gather(trace.events["parent"].gather(ops["event"]))
    inner = (
        trace.events["name"].gather(outer.cast(pl.UInt32)).str.starts_with("aten::").fill_null(value=False)
    )
    updates = trace.events["name"].str.starts_with(OPTIMIZER_STEP).fill_null(value=False).to_numpy()
    updating = pl.Series(above(trace, updates)[ops["event"].to_numpy()] >= 0)
    zero = pl.lit(0, pl.Int64)
    placed = ops.filter(~inner & ~updating).select(
        "track",
        "start_ns",
        "end_ns",
        "dur_ns",
        trigger="event",
        call=pl.lit(None, pl.String),
        scope=pl.lit("none"),
        stalled_ns=zero,
        after_ns=zero,
    )
    placed = placed.hstack(places_of(trace, placed["trigger"]))
    return Synchronisation(points=_points(trace, placed), **_totals(placed), would_stall=True)
