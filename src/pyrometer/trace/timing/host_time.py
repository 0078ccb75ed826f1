"""What a host thread did in given windows of time: loading data, waiting, allocating, Python, which operator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from pyrometer.trace.kinds import Kind, is_kind
from pyrometer.trace.naming.frames import without_ours
from pyrometer.trace.naming.patterns import is_data_loading, is_step_mark
from pyrometer.trace.records.waiting import HOST_KINDS
from pyrometer.trace.rows import IntArray
from pyrometer.trace.timing.innermost import Overlaps, innermost
from pyrometer.trace.timing.waits import find_waits
from pyrometer.trace.trace import RankTrace

ALLOCATOR = (
    r"^(cuda|hip)(Malloc|Free|HostAlloc|HostMalloc|HostFree)|^(cu|hip)Mem(Create|Map|Unmap|Release|Alloc|Free"
    r"|AddressReserve|AddressFree|SetAccess)"
)
GARBAGE = r"^Python GC$|^<built-in function collect>$"


@dataclass(frozen=True)
class HostTime:
    """What the host did in each window."""

    ns: IntArray  # one row per window, one column per `HOST_KINDS`; a row sums to the window's length
    kind: IntArray  # of each window, the column with the most time
    doing: pl.DataFrame  # `window, event, name, ns`: what the time of that column went to, the most first


def host_time(trace: RankTrace, track: IntArray, low: IntArray, high: IntArray) -> HostTime:
    """Attribute each window `[low, high)` by how much of it each kind covers on the thread `track`.

    Where nothing was recorded on that thread for most of a window, it is attributed on the thread that did the most in
    it, of those that run operators or runtime calls: it is what the first one waited for.
    """
    pieces = innermost(trace)
    kinds, shown = _kinds(trace)
    track = track.copy()
    amounts = _amounts(pieces.within(track, low, high), kinds, high - low)
    nothing = len(HOST_KINDS) - 1
    unclear = np.flatnonzero(amounts.argmax(axis=1) == nothing)
    if len(unclear):
        begin, end = low[unclear], high[unclear]
        for thread in _working_threads(trace):
            there = np.full(len(unclear), thread)
            found = _amounts(pieces.within(there, begin, end), kinds, end - begin)
            better = found[:, nothing] < amounts[unclear, nothing]
            amounts[unclear[better]], track[unclear[better]] = found[better], thread
    winner = amounts.argmax(axis=1)
    return HostTime(amounts, winner, _doing(trace, pieces.within(track, low, high), winner, kinds, shown))


def _amounts(overlaps: Overlaps, kinds: IntArray, lengths: IntArray) -> IntArray:
    amounts = np.zeros((len(lengths), len(HOST_KINDS)), np.int64)
    np.add.at(amounts, (overlaps.window, kinds[overlaps.event]), overlaps.ns)
    amounts[:, -1] += lengths - amounts.sum(axis=1)
    return amounts


def _doing(
    trace: RankTrace, overlaps: Overlaps, winner: IntArray, kinds: IntArray, array: IntArray
) -> pl.DataFrame:
    kind = kinds[overlaps.event]
    chosen = (kind == winner[overlaps.window]) & (kind < len(HOST_KINDS) - 1)
    rows = array[overlaps.event[chosen]]
    doing = pl.DataFrame({"window": overlaps.window[chosen], "event": rows, "ns": overlaps.ns[chosen]})
    names = without_ours(trace.events["name"].gather(pl.Series(rows, dtype=pl.UInt32)))
    table = doing.with_columns(names.alias("name"))
    return (
        table.sort("ns", descending=True, maintain_order=True)
        .group_by("window", "name", maintain_order=True)
        .agg(pl.col("event").first(), pl.col("ns").sum())
        .sort("window", "ns", descending=[False, True], maintain_order=True)
    )


def _working_threads(trace: RankTrace) -> list[int]:
    """Threads that run runtime calls, or else operators; the eight busiest."""
    for kinds in ((Kind.RUNTIME.value, Kind.DRIVER.value), (Kind.CPU_OP.value,)):
        rows = (
            trace.bounds_of(*kinds)["track"].value_counts().sort("count", "track", descending=[True, False])
        )
        if rows.height:
            return rows["track"].head(8).to_list()
    return []


def _kinds(trace: RankTrace) -> tuple[IntArray, IntArray]:
    """For each event what a thread does in it, as a column of `HOST_KINDS`, and the event to name for it."""
    events = trace.events
    own = np.arange(events.height)
    function = is_kind(Kind.PYTHON_FUNCTION)
    marks = trace.sorts.table.select(
        call=is_kind(Kind.RUNTIME, Kind.DRIVER),
        data=is_data_loading(),
        gc=function & pl.col("name").str.contains(GARBAGE),
        allocator=pl.col("name").str.contains(ALLOCATOR),
        python=function,
        annotation=is_kind(Kind.USER_ANNOTATION) & ~is_step_mark(),
        op=is_kind(Kind.CPU_OP) & ~is_step_mark(),
    ).fill_null(value=False)[trace.sorts.code]
    waits = np.zeros(events.height, np.bool_)
    waits[find_waits(trace)["event"].to_numpy()] = True
    data, gc, python, annotation, op = (
        trace.nearest(marks[name].to_numpy()) for name in ("data", "gc", "python", "annotation", "op")
    )
    call = marks["call"].to_numpy()
    frame = np.where(trace.places.frame >= 0, trace.places.frame, python)
    cases = [
        (data >= 0, data),
        (gc >= 0, gc),
        (call & marks["allocator"].to_numpy(), own),
        (call & waits, own),
        (call, own),
        (op >= 0, op),
        (python >= 0, frame),
        (annotation >= 0, annotation),
    ]
    held = [condition for condition, _ in cases]
    kind = np.select(held, list(range(len(cases))), default=len(cases))
    return kind, np.select(held, [event for _, event in cases], default=own)
