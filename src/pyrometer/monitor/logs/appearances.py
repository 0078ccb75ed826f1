"""When shapes and batch sizes first came to a process, and when it compiled anew: the two are compared at the end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

MOST = 100_000
"""Values of one kind whose first second is kept."""

KINDS = ("process", "shape", "batch")


class Happened(NamedTuple):
    """Events of one kind in one second of one process and cell."""

    second: int
    cell: int
    count: int
    keys: tuple[tuple[str, str, str], ...]  # kind, process and value, per kind


class Appearances:
    """First seconds, and events that could come from a first appearance."""

    def __init__(self) -> None:
        self.first_s: dict[tuple[str, str, str], int] = {}
        self.recompiles: list[Happened] = []
        self.breaks: list[Happened] = []
        self.is_whole = True

    def add(self, groups: pl.DataFrame, cells: npt.NDArray[np.int64]) -> None:
        """Take in the groups of a table, of which each has the cell at its place."""
        known = groups.with_columns(pl.Series("cell", cells)).filter(pl.col("second") >= 0)
        for kind in KINDS:
            firsts = known.group_by("process", pl.col(kind).alias("value")).agg(pl.col("second").min())
            for process, value, second in firsts.iter_rows():
                self._see((kind, process, value), second)
        self._collect(self.recompiles, known, "recompiles")
        self._collect(self.breaks, known, "breaks")

    def _see(self, key: tuple[str, str, str], second: int) -> None:
        if key in self.first_s:
            self.first_s[key] = min(self.first_s[key], second)
        elif len(self.first_s) < MOST:
            self.first_s[key] = second
        else:
            self.is_whole = False

    def _collect(self, into: list[Happened], groups: pl.DataFrame, column: str) -> None:
        rows = groups.filter(pl.col(column) > 0).select("second", "cell", column, *KINDS)
        for second, cell, count, process, shape, batch in rows.iter_rows():
            if len(into) >= MOST:
                self.is_whole = False
                return
            keys = (("process", process, process), ("shape", process, shape), ("batch", process, batch))
            into.append(Happened(second, cell, count, keys))
