"""The call tree of host threads: who encloses whom, and the time that is an event's own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

TOLERANCE_NS = 1000
"""Two neighbours may overlap by this much and still count as neighbours: times are rounded when they are written, in
old files to whole microseconds."""

IntArray = npt.NDArray[np.int64]


class Tree(NamedTuple):
    """One figure per event, in the order given."""

    parent: IntArray  # -1 at the roots
    depth: IntArray
    self_ns: IntArray
    violations: int  # events that end after the event that encloses their start


def nest(track: IntArray, start: IntArray, end: IntArray) -> Tree:
    """Nest the events of each track; they come in order of start, the outermost first where starts are equal.

    The time of a track is given to the innermost open event, which is the one that began last. So the `self_ns` of a
    track sum exactly to the time in which anything runs on it, also where events overlap without nesting. Such an event
    is counted, and becomes a child of the innermost open one that it does not outlive: a span that a function opens goes
    on after that function has returned, and is not below it; nor is what the function that closes a span opens next.
    """
    parent = np.full(len(start), -1, np.int64)
    depth = np.zeros(len(start), np.int64)
    own = np.zeros(len(start), np.int64)
    violations = 0
    order = np.argsort(track, kind="stable")
    ordered = track[order]
    bounds = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1)).tolist()
    for low, high in zip(bounds, [*bounds, len(order)][1:], strict=True):
        rows = order[low:high]
        one = _nest_track(start[rows].tolist(), end[rows].tolist())
        found = np.array(one[0], np.int64)
        parent[rows] = np.where(found >= 0, rows[found], -1)
        depth[rows] = one[1]
        own[rows] = one[2]
        violations += one[3]
    return Tree(parent, depth, own, violations)


def _nest_track(start: list[int], end: list[int]) -> tuple[list[int], list[int], list[int], int]:
    """`nest` for one track; plain lists, since this loop touches every event once."""
    parent = [-1] * len(start)
    depth = [0] * len(start)
    own = [0] * len(start)
    violations = 0
    stack: list[int] = []
    clock = 0  # the time up to which everything is given away
    for i, begins in enumerate(start):
        ends = end[i]
        while stack:
            top = stack[-1]
            closes = end[top]
            if closes > begins and (ends <= closes or closes - begins > TOLERANCE_NS):
                break
            stack.pop()
            until = closes if closes < begins else begins
            if until > clock:
                own[top] += until - clock
                clock = until
        if stack:
            top = stack[-1]
            if begins > clock:
                own[top] += begins - clock
            if ends > end[top]:
                violations += 1
                outlived = ends - TOLERANCE_NS
                top = next((one for one in reversed(stack) if end[one] >= outlived), -1)
            if top >= 0:
                parent[i] = top
                depth[i] = depth[top] + 1
        if begins > clock:
            clock = begins
        stack.append(i)
    while stack:
        top = stack.pop()
        if end[top] > clock:
            own[top] += end[top] - clock
            clock = end[top]
    return parent, depth, own, violations
