"""What each host thread was in at every moment: its time cut into pieces, each given to the innermost open event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from pyrometer.trace.dependencies.segments import host_segments
from pyrometer.trace.rows import IntArray
from pyrometer.trace.timing.intervals import Lanes


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

    The pieces of an event sum to its `self_ns`, but for times that were rounded when they were written; those of a thread
    sum to the time in which anything runs on it.
    """
    lanes, segments = Lanes(low, high), host_segments(events, low, high)
    held = segments.event >= 0
    lane, start, end, event = (column[held] for column in segments)
    return Pieces(lanes, lanes.place(lane, start), lanes.place(lane, end), event)
