"""Algebra on half-open intervals of integer nanoseconds, exact to the nanosecond.

`Lanes` keeps many tracks apart on one axis, so that the same algebra works per thread or per stream at once.

A set is a pair of int64 arrays `(start, end)`. `union` makes it canonical: sorted, disjoint, not touching, none
empty; all other functions take canonical sets and return canonical sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from pyrometer.trace.rows import ranges

Nanoseconds: TypeAlias = npt.NDArray[np.int64]


class Intervals(NamedTuple):
    """Half-open intervals `[start, end)`, as two arrays of equal length."""

    start: Nanoseconds
    end: Nanoseconds


EMPTY = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def union(start: Nanoseconds, end: Nanoseconds) -> Intervals:
    """The canonical set that covers the same points; intervals that are empty or end before they start vanish.

    >>> union(np.array([5, 0, 3, 9]), np.array([6, 3, 4, 9]))
    Intervals(start=array([0, 5]), end=array([4, 6]))
    """
    start, end = np.asarray(start, np.int64), np.asarray(end, np.int64)
    kept = end > start
    if not kept.any():
        return EMPTY
    start, end = start[kept], end[kept]
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    end = np.maximum.accumulate(end)
    first = np.empty(len(start), dtype=bool)
    first[0] = True
    np.greater(start[1:], end[:-1], out=first[1:])
    last = np.append(first[1:], True)
    return Intervals(start[first], end[last])


def merge(*sets: Intervals) -> Intervals:
    """The points that lie in any of the sets."""
    if sets:
        return union(np.concatenate([s.start for s in sets]), np.concatenate([s.end for s in sets]))
    return EMPTY


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """The points that lie in both.

    >>> one = Intervals(np.array([0, 10]), np.array([5, 20]))
    >>> intersect(one, Intervals(np.array([4]), np.array([12])))
    Intervals(start=array([ 4, 10]), end=array([ 5, 12]))
    """
    if not len(a.start) or not len(b.start):
        return EMPTY
    first = np.searchsorted(b.end, a.start, side="right")
    stop = np.searchsorted(b.start, a.end, side="left")
    count = np.maximum(stop - first, 0)
    mine, theirs = ranges(first, count)
    return Intervals(np.maximum(a.start[mine], b.start[theirs]), np.minimum(a.end[mine], b.end[theirs]))


def complement(a: Intervals, low: int, high: int) -> Intervals:
    """The points of `[low, high)` that lie outside the set.

    >>> complement(Intervals(np.array([2]), np.array([4])), 0, 10)
    Intervals(start=array([0, 4]), end=array([ 2, 10]))
    """
    start = np.concatenate([[low], a.end]).astype(np.int64)
    end = np.concatenate([a.start, [high]]).astype(np.int64)
    return union(np.maximum(start, low), np.minimum(end, high))


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """The points of `a` that lie outside `b`.

    >>> subtract(Intervals(np.array([0]), np.array([9])), Intervals(np.array([2, 5]), np.array([3, 6])))
    Intervals(start=array([0, 3, 6]), end=array([2, 5, 9]))
    """
    if not len(a.start) or not len(b.start):
        return a
    return intersect(a, complement(b, int(a.start[0]), int(a.end[-1])))


def clip(a: Intervals, low: int, high: int) -> Intervals:
    """The part within `[low, high)`."""
    return union(np.maximum(a.start, low), np.minimum(a.end, high))


def length(a: Intervals) -> int:
    """Total length, ns.

    >>> length(Intervals(np.array([0, 10]), np.array([5, 20])))
    15
    """
    return int((a.end - a.start).sum())


def covered(a: Intervals, low: Nanoseconds, high: Nanoseconds) -> Nanoseconds:
    """How much of each `[low, high)` the set covers, ns: one figure per step or gap, in `O((n + m) log n)`.

    >>> covered(Intervals(np.array([0, 10]), np.array([5, 20])), np.array([0, 4]), np.array([5, 12]))
    array([5, 3])
    """
    if not len(a.start):
        return np.zeros(len(low), np.int64)
    before = np.concatenate([[0], np.cumsum(a.end - a.start)])

    def up_to(t: Nanoseconds) -> Nanoseconds:
        i = np.searchsorted(a.start, t, side="right")
        inside = np.where(
            i > 0, np.minimum(t, a.end[np.maximum(i, 1) - 1]) - a.start[np.maximum(i, 1) - 1], 0
        )
        return np.asarray(before[np.maximum(i, 1) - 1] + inside, np.int64)

    return np.asarray(np.maximum(up_to(np.asarray(high)) - up_to(np.asarray(low)), 0), np.int64)


@dataclass(frozen=True)
class Lanes:
    """One axis on which every track has a stretch of its own; `[low, high]` must hold all times.

    >>> lanes = Lanes(0, 10)
    >>> both = lanes.union(np.array([0, 1, 1]), np.array([0, 0, 5]), np.array([9, 5, 8]))
    >>> length(both), length(lanes.flatten(both))
    (17, 9)
    """

    low: int
    high: int

    @property
    def width(self) -> int:
        """Length of a stretch; one more than the times need, so that neighbours never touch."""
        return self.high - self.low + 1

    def place(self, lane: Nanoseconds, time: Nanoseconds) -> Nanoseconds:
        """Where a moment of a track lies on the axis."""
        lanes = np.asarray(lane, np.int64) * self.width
        return np.asarray(lanes + (np.asarray(time, np.int64) - self.low), np.int64)

    def union(self, lane: Nanoseconds, start: Nanoseconds, end: Nanoseconds) -> Intervals:
        """The points that intervals cover, each on its own track."""
        return union(self.place(lane, start), self.place(lane, end))

    def lane_of(self, a: Intervals) -> Nanoseconds:
        """The track of each interval."""
        return np.asarray(a.start // self.width, np.int64)

    def flatten(self, a: Intervals) -> Intervals:
        """The moments covered on any track."""
        shift = self.lane_of(a) * self.width - self.low
        return union(a.start - shift, a.end - shift)
