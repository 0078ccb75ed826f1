"""Steps at the start that take several times what the others take: warming up, compiling, tuning.

A long step that comes again later, as with a loader whose batches come in bursts, is what the program does.
"""

from __future__ import annotations

import numpy as np

from pyrometer.trace.kinds import DEVICE_WORK, Kind, is_kind
from pyrometer.trace.rows import IntArray
from pyrometer.trace.timing.step_windows import step_windows
from pyrometer.trace.trace import RankTrace

OUTLIER = 3.0
"""Times the median of all steps after it, from which on a step at the start is not like them."""

OF_ONE = 10.0
"""The same where a single step follows, of which nobody knows how much it varies."""

AGAIN = 0.5
"""Of a long step at the start, from which on a later one that is an outlier too is long for the same reason."""

FEWEST = 10
"""Operators and pieces of device work in a step, below which it is no step of the program but what is left of one."""


def count_first_steps(trace: RankTrace) -> int:
    """How many steps at the start are outliers; at most half of all, or none where the others hold next to nothing."""
    lengths = step_lengths(trace)
    first = 0
    while first + 1 < len(lengths):
        others = lengths[first + 1 :]
        if lengths[first] < (OUTLIER if len(others) > 1 else OF_ONE) * max(float(np.median(others)), 1.0):
            break
        first += 1
    first = _not_repeated(lengths, first)
    steps = trace.events.select("kind", "step").filter(is_kind(Kind.CPU_OP, *DEVICE_WORK))["step"]
    held = np.bincount(steps.drop_nulls().to_numpy(), minlength=len(lengths))
    return first if 0 < 2 * first <= len(lengths) and np.median(held[first:]) >= FEWEST else 0


def _not_repeated(lengths: IntArray, first: int) -> int:
    """How many of the first steps are none of those that come again."""
    if not 0 < first < len(lengths):
        return first
    later = lengths[first:]
    again = AGAIN * lengths[:first] <= later.max()
    again &= later.max() >= OUTLIER * np.median(later)
    repeated = np.flatnonzero(again)
    return int(repeated[0]) if len(repeated) else first


def step_lengths(trace: RankTrace) -> IntArray:
    """How long each step takes until the host has left it and the device has done its work, after the step before; ns.

    A host that runs ahead enqueues steps faster than they are done, and the first of them may wait for work that was
    launched before recording began and is not in the record: neither makes the first of them an outlier.
    """
    windows, began = step_windows(trace), trace.device_work["start_ns"].min()
    lengths = (windows["end_ns"] - windows["start_ns"]).to_numpy().astype(np.int64)
    if len(lengths) and isinstance(began, int):
        on_host = trace.steps["end_ns"][0] - trace.steps["start_ns"][0]
        lengths[0] = min(lengths[0], max(on_host, windows["end_ns"][0] - began))
    return np.asarray(lengths, np.int64)
