"""Placing slices for drawing: on one lane of a track, no two overlap."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.kinds import HOST, Kind, is_kind
from pyrometer.trace.rows import IntArray, mask_of, positions, row_numbers
from pyrometer.trace.trace import RankTrace, kept

UNPLACED = (Kind.MEMORY, Kind.INSTANT, Kind.TRACE)
"""Moments, and the frame of the recording itself: nothing to draw as a slice."""


@kept
def place_slices(trace: RankTrace) -> pl.DataFrame:
    """All events that last, or that nest, each on a lane; rows are in order of start.

    Columns: `event, track, lane, start_ns, dur_ns, end_ns, name, kind, depth, parent`.

    On a host thread the lane is the depth in the call tree. Labels on a stream (`gpu_user_annotation`) lie above its
    work. Where slices overlap without nesting, as on streams with overlapping kernels, the later one moves to the
    next lane that is free, and what it encloses moves with it; so nothing is ever hidden or lost.
    """
    slices = trace.events.filter(~is_kind(*UNPLACED)).select(
        "event", "track", "start_ns", "dur_ns", "end_ns", "name", "kind", "depth", "parent"
    )
    label = mask_of(slices, is_kind(Kind.GPU_USER_ANNOTATION))
    on_host = mask_of(slices, is_kind(*HOST))
    wanted = np.where(on_host, slices["depth"].to_numpy(), 0).astype(np.int64)
    lane = np.zeros(slices.height, np.int64)
    track, start, end = (slices[name].to_numpy() for name in ("track", "start_ns", "end_ns"))
    row = positions(slices["event"].to_numpy(), trace.events.height)
    above = np.where(on_host, row[row_numbers(slices["parent"])], -1)
    for rows in _by_track(track, label):
        lane[rows] = _lanes(
            start[rows], end[rows], wanted[rows], np.searchsorted(rows, above[rows]), above[rows]
        )
    below_labels = np.zeros(int(track.max(initial=-1)) + 1, np.int64)
    np.maximum.at(below_labels, track[label], lane[label] + 1)
    lane = np.where(label, lane, lane + below_labels[track])
    return slices.insert_column(2, pl.Series("lane", lane, dtype=pl.Int32))


def _by_track(track: IntArray, label: np.ndarray) -> list[IntArray]:
    """Rows of each track, labels and all else apart; in order of start, as they come."""
    key = track.astype(np.int64) * 2 + label
    order = np.argsort(key, kind="stable")
    return [part for part in np.split(order, np.flatnonzero(np.diff(key[order])) + 1) if len(part)]


def _lanes(
    start: IntArray, end: IntArray, wanted: IntArray, above: IntArray, is_nested: IntArray
) -> IntArray:
    """The first lane from the wanted one on that is free at the start; `above` is the slice around each."""
    if not _overlap(start, end, wanted):
        return wanted
    lanes = wanted.tolist()
    free = [0] * (max(lanes) + 1)
    first = int(start.min(initial=0))
    begins, ends = (start - first).tolist(), (end - first).tolist()
    for i, (outer, nested) in enumerate(zip(above.tolist(), is_nested.tolist(), strict=True)):
        lane = lanes[i]
        if nested >= 0 and lanes[outer] >= lane:
            lane = lanes[outer] + 1
        while lane < len(free) and free[lane] > begins[i]:
            lane += 1
        free.extend([0] * (lane + 1 - len(free)))
        free[lane] = ends[i]
        lanes[i] = lane
    return np.array(lanes, np.int64)


def _overlap(start: IntArray, end: IntArray, lane: IntArray) -> bool:
    order = np.lexsort((start, lane))
    begins, ends, lanes = start[order], end[order], lane[order]
    return bool(((lanes[1:] == lanes[:-1]) & (begins[1:] < ends[:-1])).any())
