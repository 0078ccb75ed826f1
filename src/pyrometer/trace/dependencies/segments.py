"""Host threads as sequences of segments: what ran innermost at each moment of a thread."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pyrometer.trace.linking.tree import Pieces
from pyrometer.trace.rows import IntArray, each_once


class Segments(NamedTuple):
    """Segments in order of lane and time; within a lane each begins where the one before ends."""

    lane: IntArray  # row of `tracks`
    start: IntArray
    end: IntArray
    event: IntArray  # the innermost host event, a row of `events`; -1 where nothing is recorded between two events


def host_segments(track: IntArray, pieces: Pieces, low: int, high: int) -> Segments:
    """The time of every host thread within `[low, high)`, cut wherever another event becomes the innermost.

    The segments of an event that lies within sum to its `self_ns`; between the first and the last event of a thread no
    time is left out.

    Args:
        track: of each event.
        pieces: `Links.pieces` of the same events.
        low: start of the span.
        high: its end.
    """
    start, end = np.clip(pieces.start, low, high), np.clip(pieces.end, low, high)
    held = end > start
    start, end, event = start[held], end[held], pieces.event[held]
    lane = np.asarray(track[event], np.int64)
    gap = np.flatnonzero((lane[1:] == lane[:-1]) & (start[1:] > end[:-1]))
    lanes, begins = np.append(lane, lane[gap]), np.append(start, end[gap])
    order = np.lexsort((begins, lanes))
    return Segments(
        lanes[order],
        begins[order],
        np.append(end, start[gap + 1])[order],
        np.append(event, np.full(len(gap), -1, np.int64))[order],
    )


def split(segments: Segments, lane: IntArray, time: IntArray) -> Segments:
    """The same segments, cut also at the given moments of the given lanes."""
    if not len(segments.lane) or not len(lane):
        return segments
    low = int(segments.start.min())
    width = int(segments.end.max()) - low + 2
    key = segments.lane * width + (segments.start - low)
    cut = each_once(lane * width + (np.clip(time, low - 1, low + width - 2) - low))
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
