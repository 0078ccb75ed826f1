"""What each host thread was in at every moment: its time cut into pieces, each given to the innermost open event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.intervals import Lanes
from pyrometer.trace.kinds import HOST
from pyrometer.trace.linking.nearest import by_level

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """Disjoint pieces of host time in order of thread and time; `start` and `end` lie on the axis of `lanes`."""

    lanes: Lanes
    start: IntArray
    end: IntArray
    event: IntArray  # row of `events`

    def within(self, track: IntArray, low: IntArray, high: IntArray) -> Overlaps:
        """The pieces of one thread in each window `[low, high)`."""
        begin, finish = self.lanes.place(track, low), self.lanes.place(track, high)
        first = np.searchsorted(self.end, begin, side="right")
        stop = np.searchsorted(self.start, finish, side="left")
        count = np.maximum(stop - first, 0)
        window = np.repeat(np.arange(len(begin)), count)
        piece = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
        ns = np.minimum(self.end[piece], finish[window]) - np.maximum(self.start[piece], begin[window])
        return Overlaps(window, self.event[piece], ns)


@dataclass(frozen=True)
class Overlaps:
    """One row per pair of a window and a piece that lies in it."""

    window: IntArray
    event: IntArray
    ns: IntArray


def innermost(events: pl.DataFrame, low: int, high: int) -> Pieces:
    """Cut up the time of all host threads of one rank; `events` is linked, and all times lie in `[low, high]`.

    Of events that overlap without nesting, the moments that both claim go to the piece that began first, so that the
    pieces of a thread always sum to the time in which anything runs on it.
    """
    host = events.filter(pl.col("kind").is_in([kind.value for kind in HOST])).select(
        pl.col("event").cast(pl.Int64),
        pl.col("parent").cast(pl.Int64).fill_null(-1),
        pl.col("track").cast(pl.Int64),
        "start_ns",
        "end_ns",
        pl.col("depth").cast(pl.Int64),
    )
    lanes = Lanes(low, high)
    event, parent, track, start, end, depth = (host[name].to_numpy() for name in host.columns)
    row = np.full(events.height, -1, np.int64)
    row[event] = np.arange(len(event))
    reach = _reach(np.where(parent >= 0, row[parent], -1), depth, end)
    child = np.flatnonzero(parent >= 0)
    child = child[np.argsort(row[parent[child]], kind="stable")]  # by parent, and in order of start
    mother = row[parent[child]]
    same = np.empty(len(child), dtype=bool)
    same[:1] = False
    same[1:] = mother[1:] == mother[:-1]
    before = np.where(same, np.append(0, reach[child][:-1])[: len(child)], start[mother])
    last = np.append(~same[1:], True)[: len(child)]
    tail = start.copy()
    tail[mother[last]] = reach[child[last]]
    owner = np.concatenate([mother, np.arange(len(event))])
    begins = np.concatenate([before, tail])
    ends = np.concatenate([start[child], end])
    return _disjoint(
        Pieces(lanes, lanes.place(track[owner], begins), lanes.place(track[owner], ends), event[owner])
    )


def _reach(parent: IntArray, depth: IntArray, end: IntArray) -> IntArray:
    """When an event and all below it have ended; some end after the event that they begin in."""
    reach = np.array(end, np.int64)
    for rows in reversed(by_level(depth)[1:]):
        np.maximum.at(reach, parent[rows], reach[rows])
    return reach


def _disjoint(pieces: Pieces) -> Pieces:
    order = np.lexsort((pieces.end, pieces.start))
    start, end, event = pieces.start[order], pieces.end[order], pieces.event[order]
    if len(start):
        start = np.maximum(start, np.append(start[0], np.maximum.accumulate(end)[:-1]))
    kept = end > start
    return Pieces(pieces.lanes, start[kept], end[kept], event[kept])
