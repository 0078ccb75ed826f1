"""Python frames that only pass a call on: drawn, they would stand as rows of full width above what runs."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.kinds import is_function
from pyrometer.trace.naming.patterns import is_module
from pyrometer.trace.rows import IntArray, Mask, mask_of, row_numbers
from pyrometer.trace.trace import RankTrace

PASSING = 0.995
"""A frame of which one callee takes this share has nothing of its own to show."""

WRAPPER = r"torch/nn/modules/module\.py\(\d+\): _(wrapped_)?call_impl$"
"""What torch calls a module's `forward` through."""

FORWARD = r"\): forward$"


def passing_frames(trace: RankTrace) -> Mask:
    """Of each event, whether it is such a frame: one callee takes all of it, or it is how a module runs its `forward`."""
    events = trace.events
    module = mask_of(events, is_module())
    function = mask_of(events, is_function()) & ~module
    if not function.any():
        return function
    dur, above = events["dur_ns"].to_numpy(), row_numbers(events["parent"])
    longest = np.zeros(events.height, np.int64)
    nested = above >= 0
    np.maximum.at(longest, above[nested], dur[nested])
    wrapper = function & mask_of(events, pl.col("name").str.contains(WRAPPER))
    caller = _past(above, wrapper)
    of_module = (caller >= 0) & module[caller] & mask_of(events, pl.col("name").str.contains(FORWARD))
    return function & (wrapper | of_module | ((longest >= PASSING * dur) & (longest > 0)))


def num_above(above: IntArray, marked: Mask) -> IntArray:
    """How many ancestors of each row are marked.

    >>> num_above(np.array([-1, 0, 1]), np.array([True, False, True])).tolist()
    [0, 1, 1]
    """
    number = np.where(above >= 0, marked[above], False).astype(np.int64)
    while (inside := above >= 0).any():
        number += np.where(inside, number[above], 0)
        above = np.where(inside, above[above], -1)
    return number


def _past(above: IntArray, wrapper: Mask) -> IntArray:
    """The nearest ancestor of each row that is no wrapper; -1 where there is none."""
    while (passed := (above >= 0) & wrapper[above]).any():
        above = np.where(passed, above[above], above)
    return above
