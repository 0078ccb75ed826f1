"""Host threads as sequences of segments: what ran innermost at each moment of a thread."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.kinds import HOST

IntArray = npt.NDArray[np.int64]


class Segments(NamedTuple):
    """Segments in order of lane and time; within a lane each begins where the one before ends."""

    lane: IntArray  # row of `tracks`
    start: IntArray
    end: IntArray
    event: IntArray  # the innermost host event, a row of `events`; -1 where nothing is recorded between two events


class Nest(NamedTuple):
    """Host events of all threads in order of start, cut so that each lies within its parent and beside its siblings.

    An event that encloses one which began before it begins where that one ends.
    """

    row: IntArray  # of `events`
    lane: IntArray
    start: IntArray
    end: IntArray
    parent: IntArray  # index in this table; -1 at the roots
    depth: IntArray


def host_segments(events: pl.DataFrame, low: int, high: int) -> Segments:
    """Cut the time of every host thread within `[low, high)` at each start and end of an event.

    Time belongs to the innermost event, as in `linking.tree`, so the segments of an event sum to its `self_ns`; between
    the first and the last event of a thread no time is left out.
    """
    nest = _nest(events, low, high)
    live = np.flatnonzero(nest.end > nest.start)
    if not len(live):
        none = np.empty(0, np.int64)
        return Segments(none, none, none, none)
    inner_first = live[np.argsort(-nest.depth[live], kind="stable")]
    lane = np.concatenate([nest.lane[inner_first], nest.lane[live]])
    time = np.concatenate([nest.end[inner_first], nest.start[live]])
    owner = np.concatenate([nest.parent[inner_first], live])
    key = lane * (high - low + 1) + (time - low)
    order = np.argsort(key, kind="stable")
    key = key[order]
    last = order[np.append(key[1:] != key[:-1], True)]  # what holds after all that happens at one moment
    lane, time, owner = lane[last], time[last], owner[last]
    kept = np.flatnonzero(lane[1:] == lane[:-1])
    event = np.where(owner[kept] >= 0, nest.row[owner[kept]], -1)
    return Segments(lane[kept], time[kept], time[kept + 1], event)


def _nest(events: pl.DataFrame, low: int, high: int) -> Nest:
    host = events.filter(
        pl.col("kind").is_in([kind.value for kind in HOST]) & pl.col("track").is_not_null()
    ).select("event", "track", "start_ns", "end_ns", "parent", "depth")
    row = host["event"].to_numpy().astype(np.int64)
    place = np.full(events.height + 1, -1, np.int64)
    place[row] = np.arange(len(row))
    parent = place[host["parent"].cast(pl.Int64).fill_null(-1).to_numpy()]
    lane = host["track"].to_numpy().astype(np.int64)
    start = np.clip(host["start_ns"].to_numpy(), low, high)
    end = np.clip(host["end_ns"].to_numpy(), low, high)
    depth = host["depth"].to_numpy().astype(np.int64)
    begun = start.copy()
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(depth.max(initial=-1) + 2))
    levels = [order[first:stop] for first, stop in pairwise(bounds[1:].tolist())]
    levels = [rows[parent[rows] >= 0] for rows in levels]
    for rows in reversed(levels):  # times are rounded: what an event encloses may end a trifle after it
        np.maximum.at(end, parent[rows], end[rows])
    _cut_at_siblings(np.where(parent >= 0, parent, -1 - lane), start, end)
    for rows in levels:
        end[rows] = np.minimum(end[rows], end[parent[rows]])
    _begin_behind_earlier(parent, begun, start, end)
    return Nest(row, lane, start, end, parent, depth)


def _begin_behind_earlier(parent: IntArray, begun: IntArray, start: IntArray, end: IntArray) -> None:
    """What encloses an event that began before it comes to the fore when that one ends."""
    inner = np.flatnonzero(parent >= 0)
    above = parent[inner]
    while len(inner):
        later = begun[above] > begun[inner]
        inner, above = inner[later], above[later]
        np.maximum.at(start, above, end[inner])
        above = parent[above]
        inner, above = inner[above >= 0], above[above >= 0]


def _cut_at_siblings(family: IntArray, start: IntArray, end: IntArray) -> None:
    order = np.argsort(family, kind="stable")
    same = family[order[1:]] == family[order[:-1]]
    first, second = order[:-1][same], order[1:][same]
    end[first] = np.minimum(end[first], start[second])


def split(segments: Segments, lane: IntArray, time: IntArray) -> Segments:
    """The same segments, cut also at the given moments of the given lanes."""
    if not len(segments.lane) or not len(lane):
        return segments
    low = int(segments.start.min())
    width = int(segments.end.max()) - low + 2
    key = segments.lane * width + (segments.start - low)
    cut = np.unique(lane * width + (np.clip(time, low - 1, low + width - 2) - low))
    at = np.searchsorted(key, cut, side="right") - 1
    moment = cut - lane_of(cut, width) * width + low
    inside = (at >= 0) & (segments.lane[at] == lane_of(cut, width))
    inside &= (moment > segments.start[at]) & (moment < segments.end[at])
    at, moment = at[inside], moment[inside]
    where = np.concatenate([np.arange(len(key)), at])
    start = np.concatenate([segments.start, moment])
    order = np.lexsort((start, where))
    where, start = where[order], start[order]
    end = segments.end[where]
    more = where[1:] == where[:-1]
    end[:-1][more] = start[1:][more]
    return Segments(segments.lane[where], start, end, segments.event[where])


def lane_of(key: IntArray, width: int) -> IntArray:
    """The lane that a key of `lane * width + offset` was made of."""
    return np.asarray(key // width, np.int64)
