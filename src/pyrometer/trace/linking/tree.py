"""The call tree of host threads: who encloses whom, and the time that is an event's own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

TOLERANCE_NS = 1000
"""Two neighbours may overlap by this much and still count as neighbours, and an event may end so much after the one that
encloses it: times are rounded when they are written, in old files to whole microseconds."""

IntArray = npt.NDArray[np.int64]


class Tree(NamedTuple):
    """One figure per event, in the order given."""

    parent: IntArray  # -1 at the roots
    depth: IntArray
    self_ns: IntArray
    violations: int  # events that end after the event that encloses their start


def nest(track: IntArray, start: IntArray, end: IntArray) -> Tree:
    """Nest the events of each track; they come in order of start, the outermost first where starts are equal.

    An event that begins within another and clearly outlasts it counts as enclosing it from then on, and is counted: an annotation
    that is opened inside of the function which opens it, or a function that an annotation of a phase begins in. So what
    encloses an event was open all the time that it ran, and what ended before is above none that came later.

    Each moment of a track belongs to one event, to the innermost that is open: so the `self_ns` of a track sum exactly to
    the time in which anything runs on it, also where events overlap without nesting.
    """
    parent = np.full(len(start), -1, np.int64)
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
        own[rows] = one[1]
        violations += one[2]
    return Tree(parent, depth_of(parent), own, violations)


def depth_of(parent: IntArray) -> IntArray:
    """Number of ancestors; each round looks twice as far up.

    >>> depth_of(np.array([1, -1, 0, 2])).tolist()
    [1, 0, 2, 3]
    """
    depth = (parent >= 0).astype(np.int64)
    above = parent
    while (inside := above >= 0).any():
        depth += np.where(inside, depth[above], 0)
        above = np.where(inside, above[above], -1)
    return depth


def _nest_track(start: list[int], end: list[int]) -> tuple[list[int], list[int], int]:
    """`nest` for one track; plain lists, since this loop touches every event once."""
    parent = [-1] * len(start)
    own = [0] * len(start)
    violations = 0
    stack: list[int] = []  # open events; none outlasts the one below it by more than rounding
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
        if not stack:
            stack.append(i)
        else:
            top = stack[-1]
            if begins > clock:
                own[top] += begins - clock
            if ends - end[top] <= TOLERANCE_NS:
                parent[i] = top
                stack.append(i)
            else:
                violations += 1
                place = len(stack) - 1
                while place > 0 and ends - end[stack[place - 1]] > TOLERANCE_NS:
                    place -= 1
                parent[i] = stack[place - 1] if place > 0 else -1
                parent[stack[place]] = i
                stack.insert(place, i)
        if begins > clock:
            clock = begins
    while stack:
        top = stack.pop()
        if end[top] > clock:
            own[top] += end[top] - clock
            clock = end[top]
    return parent, own, violations
