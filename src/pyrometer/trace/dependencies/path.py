"""The critical path as a table of pieces that cover the span exactly, each with its class and the event behind it."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.dependencies.graph import Edge, Graph, dependencies
from pyrometer.trace.dependencies.replay import WORK, Pieces, critical_pieces
from pyrometer.trace.kinds import HOST, Kind
from pyrometer.trace.naming.patterns import (
    is_blocking_call,
    is_communication,
    is_data_loading,
    is_host_communication,
)
from pyrometer.trace.rows import IntArray, among, nullable, ranges
from pyrometer.trace.trace import RankTrace, kept

CLASSES = (
    "compute",  # kernels that are not communication
    "communication",  # communication kernels; without device work, operators and annotations of it
    "memcpy",  # copies, and calls that copy before they return
    "memset",
    "launch",  # calls that start device work, and the delay until it starts on an idle stream
    "sync",  # calls that wait for a device: their own cost, and the time in which the thread wakes up
    "runtime",  # all other runtime and driver calls
    "data",  # host time within the data loader
    "host_op",  # operators, where no call runs within them
    "python",  # Python functions, where nothing runs within them; needs a trace with stacks
    "untraced",  # host time in which no event was recorded, or only an annotation
    "idle",  # nothing that the trace holds: gaps between queued work, and delays without a cause
)
CLASS_OF_KIND = {
    Kind.KERNEL.value: "compute",
    Kind.MEMCPY.value: "memcpy",
    Kind.MEMSET.value: "memset",
    Kind.RUNTIME.value: "runtime",
    Kind.DRIVER.value: "runtime",
    Kind.CPU_OP.value: "host_op",
    Kind.PYTHON_FUNCTION.value: "python",
}
CLASS = pl.Enum(list(CLASSES))
IDLE, UNTRACED, LAUNCH, MEMCPY, DATA = (
    CLASSES.index(name) for name in ("idle", "untraced", "launch", "memcpy", "data")
)


def class_sums(code: IntArray, ns: IntArray) -> dict[str, int]:
    """Time of each of `CLASSES`, of pieces whose classes are given by their index."""
    sums = np.zeros(len(CLASSES), np.int64)
    np.add.at(sums, code, ns)
    return dict(zip(CLASSES, sums.tolist(), strict=True))


@kept
def event_classes(trace: RankTrace) -> IntArray:
    """The class of every event that can stand on a critical path, as an index of `CLASSES`."""
    graph = dependencies(trace)
    kind, device = pl.col("kind").cast(pl.String), len(graph.device) > 0
    call = kind.is_in([Kind.RUNTIME.value, Kind.DRIVER.value])
    kernel = kind == Kind.KERNEL.value
    rows = trace.sorts.table.select(
        pl.when((kernel & is_communication()) | (pl.lit(not device) & is_host_communication()))
        .then(pl.lit("communication"))
        .when(call & is_blocking_call())
        .then(pl.lit("sync"))
        .otherwise(kind.replace_strict(CLASS_OF_KIND, default="untraced"))
        .cast(CLASS)
        .to_physical()
        .cast(pl.Int64)
        .alias("class"),
        loading=is_data_loading().fill_null(value=False),
        host=kind.is_in([one.value for one in HOST]),
        call=call,
    )[trace.sorts.code]
    found = rows["class"].to_numpy().copy()
    launching = graph.device.call[graph.device.call >= 0]
    found[launching[rows["call"].to_numpy()[launching]]] = LAUNCH
    waits = graph.waits.event
    found[waits[among(waits, graph.device.call[graph.device.is_copy])]] = MEMCPY
    if rows["loading"].any():
        within = trace.nearest(rows["loading"].to_numpy()) >= 0
        found[within & rows["host"].to_numpy()] = DATA
    return np.asarray(found, np.int64)


@kept
def outermost_loading(trace: RankTrace) -> IntArray:
    """For each event the outermost wait for data at or above it, as a row; -1 where there is none."""
    loading = trace.mask(is_data_loading())
    parent = trace.parent
    above = np.where(parent >= 0, trace.nearest(loading)[parent], -1)
    return trace.nearest(loading & (above < 0))


@kept
def path_walk(trace: RankTrace) -> Pieces:
    """The critical path as the graph sees it."""
    return critical_pieces(dependencies(trace))


@kept
def path_pieces(trace: RankTrace) -> pl.DataFrame:
    """The critical path in order of time: `start_ns, end_ns, class, event, name, track`; the pieces partition the span.

    `event` is null where nothing was recorded. Kept with the trace.
    """
    graph = dependencies(trace)
    pieces = path_walk(trace)
    classes = event_classes(trace)
    start, end, code, event = _merged(*_filled(graph, *_expand(graph, pieces, classes)))
    known = nullable(event)
    return pl.DataFrame(
        {
            "start_ns": start,
            "end_ns": end,
            "class": pl.Series(CLASSES, dtype=CLASS).gather(code),
            "event": known,
        }
    ).with_columns(name=trace.events["name"].gather(known), track=trace.events["track"].gather(known))


def _expand(graph: Graph, pieces: Pieces, classes: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Pieces with their class and event; those on host threads cut into segments."""
    work, point = graph.work[pieces.node], graph.point[pieces.node]
    kind = pieces.kind
    code, event = np.full(len(kind), IDLE), np.full(len(kind), -1, np.int64)
    code[(kind == Edge.ROOT) & (point >= 0)] = UNTRACED
    ran = kind == WORK
    event[ran] = graph.device.event[work[ran]]
    launched = kind == Edge.LAUNCH
    event[launched] = graph.device.call[work[launched]]
    woken = kind == Edge.WAKE
    event[woken] = graph.waits.event[graph.waiting_calls[graph.points.waiting[point[woken]]]]
    known = event >= 0
    code[known] = classes[event[known]]
    op = launched & ~np.isin(code, [LAUNCH, MEMCPY])
    code[op] = LAUNCH
    thread = np.isin(kind, [Edge.PROGRAM, Edge.WAITING, Edge.HANDOFF]) & (point >= 0)
    rest = ~thread
    lane, start, stop = graph.points.lane[point[thread]], pieces.start[thread], pieces.stop[thread]
    cut = _cut(graph, lane, start, stop, classes)
    own = (pieces.start[rest], pieces.stop[rest], code[rest], event[rest])
    joined = [np.concatenate(pair) for pair in zip(own, cut, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return joined[0][order], joined[1][order], joined[2][order], joined[3][order]


def _cut(
    graph: Graph, lane: IntArray, start: IntArray, stop: IntArray, classes: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Stretches of host threads as their segments."""
    segments = graph.points.segments
    width = graph.high - graph.low + 1
    begins = segments.lane * width + (segments.start - graph.low)
    ends = segments.lane * width + (segments.end - graph.low)
    first = np.searchsorted(ends, lane * width + (start - graph.low), side="right")
    last = np.searchsorted(begins, lane * width + (stop - graph.low), side="left")
    count = np.maximum(last - first, 0)
    piece, which = ranges(first, count)
    event = segments.event[which]
    code = np.where(event >= 0, classes[event], UNTRACED) if len(classes) else event
    low, high = np.maximum(segments.start[which], start[piece]), np.minimum(segments.end[which], stop[piece])
    kept = high > low
    return low[kept], high[kept], code[kept], event[kept]


def _filled(
    graph: Graph, start: IntArray, end: IntArray, code: IntArray, event: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Stretches in which the thread on the path has no segment at all are untraced."""
    begin, close = np.append(graph.low, end), np.append(start, graph.high)
    hole = close > begin
    low, high = begin[hole], close[hole]
    none = np.full(len(low), -1, np.int64)
    order = np.argsort(np.concatenate([start, low]), kind="stable")
    return (
        np.concatenate([start, low])[order],
        np.concatenate([end, high])[order],
        np.concatenate([code, np.full(len(low), UNTRACED)])[order],
        np.concatenate([event, none])[order],
    )


def _merged(
    start: IntArray, end: IntArray, code: IntArray, event: IntArray
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Neighbours of the same event joined."""
    if not len(start):
        return start, end, code, event
    first = np.append(True, (code[1:] != code[:-1]) | (event[1:] != event[:-1]))
    return start[first], end[np.append(first[1:], True)], code[first], event[first]
