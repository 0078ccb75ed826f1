"""Events that overlap on a track without nesting, moved to further lanes: viewers drop what does not nest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyrometer.trace.rows import IntArray


def find_lanes(track: IntArray, start: IntArray, end: IntArray) -> IntArray:
    """The lane of each event: 0 on the track itself, and above only where it would not nest.

    Events come in order of start, the longest first where starts are equal. An event goes to the first lane of its track
    on which everything still open ends no earlier than it does. Empty events nest everywhere.

    >>> find_lanes(np.array([7, 7, 7]), np.array([0, 5, 9]), np.array([10, 15, 20])).tolist()
    [0, 1, 2]
    """
    lanes = np.zeros(len(track), np.int64)
    for one in np.unique(track[_crossing(track, start, end)]).tolist():
        rows = np.flatnonzero(track == one)
        lanes[rows] = _lanes_of_one(start[rows].tolist(), end[rows].tolist())
    return lanes


def _crossing(track: IntArray, start: IntArray, end: IntArray) -> npt.NDArray[np.bool_]:
    """Events that begin before an earlier one of their track has ended: only such tracks can need lanes."""
    order = np.argsort(track, kind="stable")
    found = np.zeros(len(track), dtype=np.bool_)
    bounds = np.flatnonzero(np.diff(track[order], prepend=-1))
    for rows in np.split(order, bounds[1:]) if len(order) else []:
        latest = np.maximum.accumulate(end[rows])
        found[rows[1:]] = start[rows[1:]] < latest[:-1]
    return found


def _lanes_of_one(start: list[int], end: list[int]) -> list[int]:
    open_ends: list[list[int]] = [[]]  # per lane, innermost last
    lanes = []
    for begins, ends in zip(start, end, strict=True):
        lane = _first_fitting(open_ends, begins, ends)
        if lane == len(open_ends):
            open_ends.append([])
        open_ends[lane].append(ends)
        lanes.append(lane)
    return lanes


def _first_fitting(open_ends: list[list[int]], begins: int, ends: int) -> int:
    for lane, stack in enumerate(open_ends):
        while stack and stack[-1] <= begins:
            stack.pop()
        if not stack or stack[-1] >= ends:
            return lane
    return len(open_ends)
