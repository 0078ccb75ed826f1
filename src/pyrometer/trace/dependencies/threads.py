"""Who set a thread to work: the autograd engine's threads and the thread that waits for them, and all other threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.dependencies.segments import Segments
from pyrometer.trace.dependencies.work import CALLS
from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.patterns import BACKWARD, is_step_mark
from pyrometer.trace.rows import IntArray
from pyrometer.trace.timing.intervals import union

ENGINE_THREAD = r"pt_autograd"
PAUSE_NS = 100_000
"""A thread that did nothing for this long had nothing to do; a shorter pause is its own unrecorded work."""


class Bursts(NamedTuple):
    """Stretches of activity on threads that other threads set to work."""

    lane: IntArray
    start: IntArray
    end: IntArray
    joined: npt.NDArray[np.bool_]  # whether the main thread waits until the end


class Threads(NamedTuple):
    """The main thread, and the bursts of all others."""

    main: int  # row of `tracks`; -1 without host events
    bursts: Bursts
    num_joined: int
    num_followed: int  # threads that no known dependency ties to the main thread; they follow its clock


def threads(events: pl.DataFrame, ops: pl.DataFrame, tracks: pl.DataFrame, segments: Segments) -> Threads:
    """Find the main thread, and when it set other threads to work.

    The main thread is the one that runs the forward pass: most operators that autograd recorded,
    else the first thread of the process, else most events.
    A stretch of backward operators on an engine's thread that lies within one segment of the main thread is the
    backward pass that the main thread waits for: it begins when the main thread gets there and the main thread goes
    on when it has ended. Every other stretch begins when the main thread reaches the same moment of its own run.
    """
    lanes = np.unique(segments.lane)
    if not len(lanes):
        none = np.empty(0, np.int64)
        return Threads(-1, Bursts(none, none, none, np.empty(0, bool)), 0, 0)
    counts = _counts(events, ops, tracks, lanes)
    main = _main(counts)
    engines = set(
        counts.filter(
            (pl.col("track") != main) & (pl.col("engine") | (pl.col("backward") > pl.col("forward")))
        )["track"].to_list()
    )
    parts = []
    followed = 0
    for lane in lanes.tolist():
        if lane == main:
            continue
        mine = segments.lane == lane
        busy = mine & (segments.event >= 0)
        start, end = union(segments.start[busy], segments.end[busy])
        if lane in engines:
            part = _backward_passes(start, end, segments, main, events)
        else:
            first = np.append(True, start[1:] - end[:-1] >= PAUSE_NS)
            part = start[first], end[np.append(first[1:], True)], np.zeros(int(first.sum()), bool)
            followed += 1
        parts.append(Bursts(np.full(len(part[0]), lane, np.int64), *part))
    none = np.empty(0, np.int64)
    parts.append(Bursts(none, none, none, np.empty(0, bool)))
    bursts = Bursts(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return Threads(main, bursts, int(bursts.joined.sum()), followed)


def _counts(events: pl.DataFrame, ops: pl.DataFrame, tracks: pl.DataFrame, lanes: IntArray) -> pl.DataFrame:
    numbered = ops.select("event", "sequence", "forward_thread")
    rows = tracks.select(
        "track",
        engine=pl.col("thread_name").str.contains(ENGINE_THREAD).fill_null(value=False),
        first=(pl.col("pid") == pl.col("tid")).fill_null(value=False),
    )
    is_backward = (pl.col("forward_thread").fill_null(0) != 0) | pl.col("name").str.contains(BACKWARD)
    return (
        events.filter(pl.col("track").is_in(lanes.tolist()))
        .select("event", "kind", "track", "name", "dur_ns")
        .join(numbered, on="event", how="left")
        .group_by("track")
        .agg(
            forward=((pl.col("sequence") >= 0) & ~is_backward).sum(),
            backward=is_backward.sum(),
            steps=is_step_mark().sum(),
            calls=pl.col("kind").is_in([Kind.CPU_OP.value, *CALLS]).sum(),
            events=pl.len(),
        )
        .join(rows, on="track", how="left")
        .with_columns(pl.col("engine", "first").fill_null(value=False))
    )


def _main(counts: pl.DataFrame) -> int:
    by = ["engine", "forward", "steps", "first", "calls", "events", "track"]
    return int(counts.sort(by, descending=[False, True, True, True, True, True, False])["track"][0])


def _backward_passes(
    start: IntArray, end: IntArray, segments: Segments, main: int, events: pl.DataFrame
) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
    """Group the busy stretches of an engine's thread by the segment of the main thread in which they lie."""
    low, high = np.searchsorted(segments.lane, [main, main + 1])
    at = np.searchsorted(segments.start[low:high], start, side="right") - 1
    place = low + np.maximum(at, 0)
    within = (at >= 0) & (end <= segments.end[place])
    kind = events["kind"].cast(pl.String).is_in(CALLS).to_numpy()
    owner = segments.event[place]
    within &= ~np.where(owner >= 0, kind[owner], False)
    pause = start[1:] - end[:-1] >= PAUSE_NS
    same = within[1:] & within[:-1] & (place[1:] == place[:-1])
    loose = ~within[1:] & ~within[:-1] & ~pause
    first = np.append(True, ~(same | loose))
    return start[first], end[np.append(first[1:], True)], within[first]
