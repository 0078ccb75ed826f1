"""What an event was called by, which is not all that lies around it."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.kinds import HOST
from pyrometer.trace.linking.nearest import IntArray


def callers(events: pl.DataFrame) -> IntArray:
    """For each event the innermost one around it that was open when it began, as a row of `events`; -1 at the roots.

    What a function opens goes on after it has returned, and so encloses it, but has not called it: of two steps in a row
    the second lies around the function that ends the first. Device work is called by its launch. `events` is linked.
    """
    parent = events["parent"].cast(pl.Int64).fill_null(-1).to_numpy()
    host = events["kind"].is_in([kind.value for kind in HOST]).to_numpy()
    return opened_before(parent, events["start_ns"].to_numpy(), np.flatnonzero(host & (parent >= 0)))


def opened_before(parent: IntArray, start: IntArray, rows: IntArray) -> IntArray:
    """Parents, for the given rows without those that began later.

    >>> opened_before(np.array([1, -1, 0]), np.array([0, 5, 2]), np.array([0, 2])).tolist()
    [-1, -1, 0]
    """
    found = np.array(parent, np.int64)
    while len(rows):
        rows = rows[start[found[rows]] > start[rows]]
        found[rows] = found[found[rows]]
        rows = rows[found[rows] >= 0]
    return found
