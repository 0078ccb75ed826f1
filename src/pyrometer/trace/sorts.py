"""Sorts of events: every combination of kind, category and name once, so that what a name says is asked once for all its events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from pyrometer.trace.rows import IntArray, Mask, mask_of

OF_A_SORT = ("kind", "cat", "name")


@dataclass(frozen=True)
class Sorts:
    """The sorts of some events."""

    code: IntArray  # of each event: a row of `table`
    table: pl.DataFrame  # `OF_A_SORT`, each combination once

    def mask(self, wanted: pl.Expr) -> Mask:
        """Which events fulfil a condition on kind, category and name; where it is null they do not."""
        return np.asarray(mask_of(self.table, wanted)[self.code], np.bool_)

    def of_rows(self, rows: IntArray) -> Sorts:
        """The sorts of some of the events, in the order given."""
        return Sorts(self.code[rows], self.table)


def find_sorts(events: pl.DataFrame) -> Sorts:
    """Sort events out.

    >>> events = pl.DataFrame({"kind": ["kernel", "kernel"], "cat": [None, None], "name": ["a", "b"]})
    >>> find_sorts(events).mask(pl.col("name") == "b").tolist()
    [False, True]
    """
    groups = events.select(OF_A_SORT).with_row_index("row").group_by(OF_A_SORT).agg("row")
    code = np.empty(events.height, np.int64)
    if events.height:
        code[groups["row"].explode().to_numpy()] = np.repeat(
            np.arange(groups.height), groups["row"].list.len().to_numpy()
        )
    return Sorts(code, groups.select(OF_A_SORT))
