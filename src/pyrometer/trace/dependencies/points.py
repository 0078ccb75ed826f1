"""The moments of host threads at which something depends on them, or they on something."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyrometer.trace.dependencies.segments import Segments, split
from pyrometer.trace.rows import IntArray, each_once


@dataclass(frozen=True)
class Waiting:
    """Waiting intervals of host threads, disjoint on each lane, in order of lane and start."""

    lane: IntArray
    start: IntArray
    end: IntArray
    source: IntArray  # index among the intervals that were given


@dataclass(frozen=True)
class Points:
    """Points in order of lane and time; between two of a lane lies either work or one waiting interval."""

    lane: IntArray
    time: IntArray
    waiting: IntArray  # of the interval that ends here, its `source`; -1 where work ends here
    segments: Segments  # cut at the points
    first: IntArray  # of the segments between the point before and this one
    stop: IntArray
    _waits: Waiting
    _low: int
    _width: int

    def at(self, lane: IntArray, time: IntArray) -> IntArray:
        """Index of the point for these moments; a moment within a waiting interval means the interval's start."""
        found = np.searchsorted(self._key, _snap(lane, time, self._waits, self._low, self._width))
        return np.asarray(found, np.int64)

    @property
    def _key(self) -> IntArray:
        return self.lane * self._width + (self.time - self._low)


def disjoint(lane: IntArray, start: IntArray, end: IntArray) -> Waiting:
    """Keep the outermost intervals of each lane; empty ones vanish."""
    order = np.lexsort((-end, start, lane))
    order = order[end[order] > start[order]]
    kept = []
    reached, current = 0, -1
    for i, one, low, high in zip(
        order.tolist(), lane[order].tolist(), start[order].tolist(), end[order].tolist(), strict=True
    ):
        if one != current or low >= reached:
            kept.append(i)
            current, reached = one, high
    at = np.array(kept, np.int64)
    return Waiting(lane[at], start[at], end[at], at)


def place_points(
    lane: IntArray, time: IntArray, waits: Waiting, segments: Segments, *, low: int, high: int
) -> Points:
    """Turn the wanted moments, and the ends of all waiting intervals, into points.

    Args:
        lane: threads of the wanted moments.
        time: the moments, within `[low, high]`.
        waits: the waiting intervals.
        segments: what the threads ran.
        low: start of the span.
        high: its end.
    """
    width = high - low + 1
    wanted = np.concatenate(
        [
            _snap(lane, time, waits, low, width),
            waits.lane * width + (waits.start - low),
            waits.lane * width + (waits.end - low),
        ]
    )
    key = each_once(wanted)
    lane, time = key // width, key % width + low
    waiting = np.full(len(key), -1, np.int64)
    waiting[np.searchsorted(key, waits.lane * width + (waits.end - low))] = waits.source
    segments = split(segments, lane, time)
    begins = segments.lane * width + (segments.start - low)
    stop = np.searchsorted(begins, key)
    first = np.append(0, stop[:-1])[: len(key)]
    head = np.append(True, lane[1:] != lane[:-1])[: len(key)]
    first[head] = stop[head]
    return Points(lane, time, waiting, segments, first, stop, waits, low, width)


def _snap(lane: IntArray, time: IntArray, waits: Waiting, low: int, width: int) -> IntArray:
    key = lane * width + (time - low)
    if not len(waits.lane):
        return key
    begins, ends = waits.lane * width + (waits.start - low), waits.lane * width + (waits.end - low)
    at = np.maximum(np.searchsorted(begins, key, side="right") - 1, 0)
    return np.where((begins[at] < key) & (key < ends[at]), begins[at], key)
