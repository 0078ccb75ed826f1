"""Who set a thread to work: the autograd engine's threads and the thread that waits for them, and all other threads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.dependencies.handed import bare_segments, handed_work, lying_in
from pyrometer.trace.dependencies.segments import Segments
from pyrometer.trace.kinds import CALLS, Kind, kind_mask
from pyrometer.trace.naming.patterns import BACKWARD, is_step_mark
from pyrometer.trace.rows import IntArray, each_once, row_numbers
from pyrometer.trace.sorts import Sorts
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
    num_joined: int  # backward passes that it waits for
    num_handed: int  # stretches of other work that it waits for
    num_followed: int  # threads that no known dependency ties to the main thread; they follow its clock


def threads(
    events: pl.DataFrame, ops: pl.DataFrame, tracks: pl.DataFrame, segments: Segments, sorts: Sorts
) -> Threads:
    """Find the main thread, and when it set other threads to work.

    The main thread is the one that runs the forward pass: most operators that autograd recorded,
    else the first thread of the process, else most events.
    A stretch of backward operators on an engine's thread that lies within one segment of the main thread is the
    backward pass that the main thread waits for: it begins when the main thread gets there and the main thread goes
    on when it has ended. So does what another thread does while the main thread is silent; see `handed_work`. Every other
    stretch begins when the main thread reaches the same moment of its own run.
    """
    lanes = each_once(segments.lane)
    if not len(lanes):
        none = np.empty(0, np.int64)
        return Threads(-1, Bursts(none, none, none, np.empty(0, bool)), 0, 0, 0)
    counts = _counts(events, ops, tracks, lanes, sorts)
    main = _main(counts)
    engines = set(
        counts.filter(
            (pl.col("track") != main) & (pl.col("engine") | (pl.col("backward") > pl.col("forward")))
        )["track"].to_list()
    )
    bare, unknown = bare_segments(segments, sorts), segments.event < 0
    stretches = {
        lane: _stretches(segments, lane, unknown if lane in engines else bare)
        for lane in lanes.tolist()
        if lane != main
    }
    passed_on = handed_work(
        {lane: stretches[lane] for lane in stretches.keys() - engines}, segments, main, bare
    )
    none = np.empty(0, np.int64)
    parts = [Bursts(none, none, none, np.empty(0, bool))]
    for lane, (start, end) in stretches.items():
        at, within = passed_on[lane] if lane in passed_on else _awaited(start, end, segments, main, events)
        first = _first_of_bursts(start, end, at, within)
        stop = end[np.append(first[1:], True)[: len(end)]]
        parts.append(Bursts(np.full(len(stop), lane, np.int64), start[first], stop, within[first]))
    bursts = Bursts(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    is_pass = np.isin(bursts.lane, list(engines))
    return Threads(
        main,
        bursts,
        num_joined=int((bursts.joined & is_pass).sum()),
        num_handed=int((bursts.joined & ~is_pass).sum()),
        num_followed=len(set(bursts.lane[~bursts.joined & ~is_pass].tolist())),
    )


def _stretches(segments: Segments, lane: int, silent: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    busy = (segments.lane == lane) & ~silent
    return union(segments.start[busy], segments.end[busy])


def _counts(
    events: pl.DataFrame, ops: pl.DataFrame, tracks: pl.DataFrame, lanes: IntArray, sorts: Sorts
) -> pl.DataFrame:
    rows = tracks.select(
        "track",
        engine=pl.col("thread_name").str.contains(ENGINE_THREAD).fill_null(value=False),
        first=(pl.col("pid") == pl.col("tid")).fill_null(value=False),
    )
    backward, recorded = sorts.mask(pl.col("name").str.contains(BACKWARD)), np.zeros(events.height, bool)
    backward[ops.filter(pl.col("forward_thread").fill_null(0) != 0)["event"].to_numpy()] = True
    recorded[ops.filter(pl.col("sequence") >= 0)["event"].to_numpy()] = True
    track = row_numbers(events["track"])

    def counted(wanted: npt.NDArray[np.bool_]) -> IntArray:
        return np.bincount(track[wanted] + 1, minlength=int(lanes[-1]) + 2)[lanes + 1]

    counts = {
        "forward": counted(recorded & ~backward),
        "backward": counted(backward),
        "steps": counted(sorts.mask(is_step_mark())),
        "calls": counted(kind_mask(events["kind"], Kind.CPU_OP, *CALLS)),
        "events": counted(np.ones(events.height, bool)),
    }
    return (
        pl.DataFrame({"track": lanes.astype(np.int32), **counts})
        .join(rows, on="track", how="left")
        .with_columns(pl.col("engine", "first").fill_null(value=False))
    )


def _main(counts: pl.DataFrame) -> int:
    by = ["engine", "forward", "steps", "first", "calls", "events", "track"]
    return int(counts.sort(by, descending=[False, True, True, True, True, True, False])["track"][0])


def _awaited(
    start: IntArray, end: IntArray, segments: Segments, main: int, events: pl.DataFrame
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """The segment of the main thread in which each stretch of an engine's thread begins, and whether it is awaited there."""
    place, within = lying_in(start, end, segments, main)
    kind = kind_mask(events["kind"], *CALLS)
    owner = segments.event[place]
    within &= ~np.where(owner >= 0, kind[owner], False)
    return place, within


def _first_of_bursts(
    start: IntArray, end: IntArray, place: IntArray, within: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Which stretches begin a burst: those of one segment of the main thread belong together, and else what no pause parts."""
    pause = start[1:] - end[:-1] >= PAUSE_NS
    same = within[1:] & within[:-1] & (place[1:] == place[:-1])
    loose = ~within[1:] & ~within[:-1] & ~pause
    return np.append(True, ~(same | loose))[: len(start)]
