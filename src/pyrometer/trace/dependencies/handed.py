"""Work that the main thread hands to another thread and waits for, though nothing recorded ties the two."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.dependencies.segments import Segments
from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.patterns import is_data_loading, is_host_communication, is_thread_wait
from pyrometer.trace.rows import IntArray, Mask
from pyrometer.trace.sorts import Sorts

LEAST_NS = 100_000
"""A shorter silence is the main thread's own unrecorded work."""

WAKES_NS = 50_000
LATE = 0.1
"""After the work has ended the main thread goes on within this time, or within this share of its silence."""

Placed = tuple[IntArray, npt.NDArray[np.bool_]]


def handed_work(
    stretches: Mapping[int, tuple[IntArray, IntArray]], segments: Segments, main: int, bare: Mask
) -> dict[int, Placed]:
    """For each thread the segment of the main thread in which each of its stretches begins, and whether it is awaited there.

    The main thread is silent where it records nothing, but a bare annotation or a function that waits for a lock. If it
    goes on as soon as the last of the work has ended that others did meanwhile, it waited for that.

    Args:
        stretches: start and end of what each other thread did, by thread.
        segments: of all threads.
        main: the main thread.
        bare: of each segment, whether nothing shows that its thread works.
    """
    placed = {lane: lying_in(*times, segments, main) for lane, times in stretches.items()}
    length = segments.end - segments.start
    silent = bare & (length >= LEAST_NS)
    ended = np.zeros(len(segments.lane), np.int64)
    for lane, (place, within) in placed.items():
        within[~silent[place]] = False
        np.maximum.at(ended, place[within], stretches[lane][1][within])
    awaited = segments.end - ended <= np.maximum(WAKES_NS, LATE * length)
    return {lane: (place, within & awaited[place]) for lane, (place, within) in placed.items()}


def lying_in(start: IntArray, end: IntArray, segments: Segments, main: int) -> Placed:
    """The segment of the main thread in which each stretch begins, and whether it also ends there."""
    low, high = np.searchsorted(segments.lane, [main, main + 1])
    at = np.searchsorted(segments.start[low:high], start, side="right") - 1
    place = low + np.maximum(at, 0)
    return place, (at >= 0) & (end <= segments.end[place])


def bare_segments(segments: Segments, sorts: Sorts) -> Mask:
    """Segments in which nothing shows that their thread works: nothing is recorded, but an annotation or a wait for a thread."""
    label = pl.col("kind") == Kind.USER_ANNOTATION.value
    quiet = sorts.mask((label & ~is_data_loading() & ~is_host_communication()) | is_thread_wait())
    none = segments.event < 0
    return none | np.where(none, False, quiet[segments.event]) if len(quiet) else none
