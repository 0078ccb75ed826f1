"""What each host thread was in at every moment: its time cut into pieces, each given to the innermost open event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from pyrometer.trace.rows import IntArray, ranges
from pyrometer.trace.timing.intervals import Lanes
from pyrometer.trace.trace import RankTrace, kept


@dataclass(frozen=True)
class Innermost:
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
        window, piece = ranges(first, count)
        ns = np.minimum(self.end[piece], finish[window]) - np.maximum(self.start[piece], begin[window])
        return Overlaps(window, self.event[piece], ns)


@dataclass(frozen=True)
class Overlaps:
    """One row per pair of a window and a piece that lies in it."""

    window: IntArray
    event: IntArray
    ns: IntArray


@kept
def innermost(trace: RankTrace) -> Innermost:
    """Cut up the time of all host threads of one rank.

    The pieces of an event sum to its `self_ns`; those of a thread sum to the time in which anything runs on it.
    """
    ends = trace.events.select(pl.col("start_ns").min().fill_null(0), pl.col("end_ns").max().fill_null(0))
    lanes, pieces = Lanes(*ends.row(0)), trace.links.pieces
    track = trace.events["track"].to_numpy()[pieces.event]
    return Innermost(lanes, lanes.place(track, pieces.start), lanes.place(track, pieces.end), pieces.event)
