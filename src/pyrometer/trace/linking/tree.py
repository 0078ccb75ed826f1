"""The call tree of host threads: who encloses whom, and the time that is an event's own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pyrometer.native import compiled
from pyrometer.trace.rows import IntArray

TOLERANCE_NS = 1000
"""Two neighbours may overlap by this much and still count as neighbours, and an event may end so much after the one that
encloses it: times are rounded when they are written, in old files to whole microseconds."""


class Pieces(NamedTuple):
    """Time of tracks, cut up and given to the innermost open event; in order of track and time, disjoint, none empty."""

    start: IntArray
    end: IntArray
    event: IntArray  # position among the events given


class Tree(NamedTuple):
    """One figure per event, in the order given, and the pieces that their own time consists of."""

    parent: IntArray  # -1 at the roots
    depth: IntArray
    self_ns: IntArray
    violations: int  # events that end after the event that encloses their start
    pieces: Pieces


NO_PIECES = Pieces(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


def nest(track: IntArray, start: IntArray, end: IntArray) -> Tree:
    """Nest the events of each track; they come in order of start, the outermost first where starts are equal.

    An event that begins within another and clearly outlasts it is counted, and becomes a child of the innermost open one
    that it does not outlast: a span that a function opens goes on after that function has returned, and is not below it.
    As long as the one that it began in is open, that one stays the innermost: what begins meanwhile lies within it.

    Each moment of a track belongs to one event, to the innermost that is open: so the `self_ns` of a track sum exactly to
    the time in which anything runs on it, also where events overlap without nesting.
    """
    parent, depth = np.full(len(start), -1, np.int64), np.empty(len(start), np.int64)
    violations = 0
    cut: list[Pieces] = []
    order = np.argsort(track, kind="stable")
    ordered = track[order]
    bounds = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1)).tolist()
    for low, high in zip(bounds, [*bounds, len(order)][1:], strict=True):
        rows = order[low:high]
        above, depth[rows], pieces, crossing = _nest_rows(start[rows], end[rows])
        parent[rows] = np.where(above >= 0, rows[above], -1)
        cut.append(pieces._replace(event=rows[pieces.event]))
        violations += crossing
    whole = (
        Pieces(*(np.concatenate([*column, np.empty(0, np.int64)]) for column in zip(*cut, strict=True)))
        if cut
        else NO_PIECES
    )
    whole = _joined(whole)
    own = np.zeros(len(start), np.int64)
    np.add.at(own, whole.event, whole.end - whole.start)
    return Tree(parent, depth, own, violations, whole)


def _joined(pieces: Pieces) -> Pieces:
    """Pieces of one event that touch, as where another begins that it keeps from the fore, are one piece."""
    goes_on = (pieces.event[1:] == pieces.event[:-1]) & (pieces.start[1:] == pieces.end[:-1])
    first, last = np.append(True, ~goes_on), np.append(~goes_on, True)
    kept = len(pieces.event) > 0
    return Pieces(pieces.start[first], pieces.end[last], pieces.event[first]) if kept else pieces


def depth_of(parent: IntArray) -> IntArray:
    """Number of ancestors; each round looks twice as far up.

    >>> depth_of(np.array([1, -1, 0, 2])).tolist()
    [1, 0, 2, 3]
    """
    depth = (parent >= 0).astype(np.int64)
    above = parent.copy()
    rows = np.flatnonzero(depth)
    while len(rows):
        higher = above[rows]
        depth[rows] += depth[higher]
        above[rows] = above[higher]
        rows = rows[above[rows] >= 0]
    return depth


def _nest_rows(start: IntArray, end: IntArray) -> tuple[IntArray, IntArray, Pieces, int]:
    """`nest` for one track: parents, depths, pieces, violations."""
    fast = compiled()
    if fast is None:
        found, listed, violations = _nest_track(start.tolist(), end.tolist())
        parent = np.array(found, np.int64)
        pieces = Pieces(*np.array(listed, np.int64).reshape(-1, 3).T)
        return parent, depth_of(parent), pieces, violations
    parent, depth = np.empty((2, len(start)), np.int64)
    cut = np.empty((3, 2 * len(start)), np.int64)
    number, violations = fast.nest(TOLERANCE_NS, start, end, parent, depth, *cut)
    return parent, depth, Pieces(*(column[:number].copy() for column in cut)), violations


def _nest_track(  # noqa: C901 - one loop over all events, and a call per event would cost more than all else
    start: list[int], end: list[int]
) -> tuple[list[int], list[tuple[int, int, int]], int]:
    """The same in Python, on plain lists, since this loop touches every event once."""
    parent = [-1] * len(start)
    pieces: list[tuple[int, int, int]] = []
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
            until = min(begins, closes)
            if until > clock:
                pieces.append((clock, until, top))
                clock = until
        if stack:
            top = stack[-1]
            if begins > clock:
                pieces.append((clock, begins, top))
            place = len(stack)
            if ends - end[top] > TOLERANCE_NS:
                violations += 1
                while place and ends - end[stack[place - 1]] > TOLERANCE_NS:
                    place -= 1
            parent[i] = stack[place - 1] if place else -1
            stack.insert(place, i)
        else:
            stack.append(i)
        clock = max(clock, begins)
    while stack:
        top = stack.pop()
        if end[top] > clock:
            pieces.append((clock, end[top], top))
            clock = end[top]
    return parent, pieces, violations
