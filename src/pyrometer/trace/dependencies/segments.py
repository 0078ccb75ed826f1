"""Host threads as sequences of segments: what ran innermost at each moment of a thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from pyrometer.trace.kinds import HOST, is_kind
from pyrometer.trace.linking.tree import nest
from pyrometer.trace.rows import IntArray


class Segments(NamedTuple):
    """Segments in order of lane and time; within a lane each begins where the one before ends."""

    lane: IntArray  # row of `tracks`
    start: IntArray
    end: IntArray
    event: IntArray  # the innermost host event, a row of `events`; -1 where nothing is recorded between two events


def host_segments(events: pl.DataFrame, low: int, high: int) -> Segments:
    """Cut the time of every host thread within `[low, high)` at each start and end of an event.

    Time belongs to the innermost event, as in `linking.tree`, so that the segments of an event sum to its `self_ns`;
    between the first and the last event of a thread no time is left out.
    """
    host = events.filter(is_kind(*HOST) & pl.col("track").is_not_null()).select(
        "event", "track", "start_ns", "end_ns"
    )
    row, track = (host[name].to_numpy().astype(np.int64) for name in ("event", "track"))
    start, end = (np.clip(host[name].to_numpy(), low, high) for name in ("start_ns", "end_ns"))
    pieces = nest(track, start, end).pieces
    lane = track[pieces.event]
    gap = np.flatnonzero((lane[1:] == lane[:-1]) & (pieces.start[1:] > pieces.end[:-1]))
    where = np.append(np.arange(len(lane)), gap)
    begins = np.append(pieces.start, pieces.end[gap])
    order = np.lexsort((begins, lane[where]))
    return Segments(
        lane[where][order],
        begins[order],
        np.append(pieces.end, pieces.start[gap + 1])[order],
        np.append(row[pieces.event], np.full(len(gap), -1, np.int64))[order],
    )


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
