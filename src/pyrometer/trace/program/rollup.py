"""Sums over the call tree: from what is an event's own to what lies at or below it, without counting twice."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.kinds import is_op
from pyrometer.trace.linking.nearest import by_level
from pyrometer.trace.naming.patterns import is_step_mark
from pyrometer.trace.rows import IntArray, Mask, distinct
from pyrometer.trace.trace import RankTrace


def above(trace: RankTrace, wanted: Mask) -> IntArray:
    """For each event the innermost wanted one strictly above it, as a row; -1 where there is none."""
    parent, found = trace.links.above, trace.nearest(wanted)
    return np.asarray(np.where(parent >= 0, found[parent], -1), np.int64)


def holds(trace: RankTrace, wanted: Mask) -> Mask:
    """Which events have a wanted one strictly below them."""
    parent = trace.parent
    found = np.zeros(len(parent), np.bool_)
    rows = np.flatnonzero(wanted)
    while len(rows):
        rows = distinct(parent[rows])
        rows = rows[rows >= 0]
        rows = rows[~found[rows]]
        found[rows] = True
    return found


def is_operator(trace: RankTrace) -> Mask:
    """Which events are operators; marks of steps, which old files write as operators, are none."""
    return trace.mask(is_op() & ~is_step_mark())


def gather_into(target: IntArray, owner: IntArray, values: IntArray) -> IntArray:
    """Add values to the rows that own them; an owner of -1 is nobody.

    >>> gather_into(np.zeros(2, np.int64), np.array([1, 1, -1]), np.array([3, 4, 5])).tolist()
    [0, 7]
    """
    held = owner >= 0
    np.add.at(target, owner[held], values[held])
    return target


def roll_up(own: IntArray, owner: IntArray, depth: IntArray) -> IntArray:
    """What lies at or below each row, from what is its own; exact, whatever the nesting.

    Args:
        own: one row per node; any number of columns.
        owner: the row above each one, -1 at the roots.
        depth: grows from each owner to what it owns.

    >>> roll_up(np.array([1, 2, 4]), np.array([-1, 0, 1]), np.array([0, 1, 2])).tolist()
    [7, 6, 4]
    """
    total = np.array(own, np.int64)
    for level in reversed(by_level(depth)):
        rows = level[owner[level] >= 0]
        np.add.at(total, owner[rows], total[rows])
    return total


def codes(keys: pl.DataFrame) -> IntArray:
    """A whole number for each row, equal where all columns are, nulls too: the first row that has these values.

    >>> codes(pl.DataFrame({"a": ["x", None, "x", None]})).tolist()
    [0, 1, 0, 1]
    """
    numbered = keys.with_row_index("_row").select(pl.col("_row").first().over(keys.columns).cast(pl.Int64))
    return np.asarray(numbered.to_series().to_numpy(), np.int64)


def is_repeated(key: IntArray, owner: IntArray) -> npt.NDArray[np.bool_]:
    """Which rows lie below another one with the same key: recursion, whose time that one holds already.

    >>> is_repeated(np.array([5, 6, 5]), np.array([-1, 0, 1])).tolist()
    [False, False, True]
    """
    found = np.zeros(len(key), bool)
    rows = np.flatnonzero(owner >= 0)
    at = owner[rows]
    while len(rows):
        same = key[at] == key[rows]
        found[rows[same]] = True
        rows, at = rows[~same], owner[at[~same]]
        rows, at = rows[at >= 0], at[at >= 0]
    return found
