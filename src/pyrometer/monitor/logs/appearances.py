"""When shapes and batch sizes first came to a process, and when it compiled anew: the two are compared at the end."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

Counts: TypeAlias = npt.NDArray[np.int64]

MOST = 100_000
"""Values of one kind whose first second is kept."""

KINDS = ("process", "shape", "batch")


class Happened(NamedTuple):
    """A second of one process in which something was compiled, or a graph broke, and what was called in it."""

    second: int
    process: str
    values: set[tuple[str, str]]  # kind and value
    cells: set[int]


class Appearances:
    """First seconds, and events that could come from a first appearance."""

    def __init__(self) -> None:
        self.first_s: dict[tuple[str, str, str], int] = {}
        self.recompiles: dict[tuple[str, int], Happened] = {}
        self.breaks: dict[tuple[str, int], Happened] = {}
        self.is_whole = True

    def add(self, groups: pl.DataFrame, cells: Counts, combined: pl.DataFrame) -> None:
        """Take in the groups of a table, of which each has the cell at its place, and since when its combinations are there."""
        for row in combined.select(*KINDS, "since").drop_nulls("since").iter_rows():
            for kind, value in zip(KINDS, row[:-1], strict=True):
                self._see((kind, row[0], value), row[-1])
        for into, column in ((self.recompiles, "recompiles"), (self.breaks, "breaks")):
            if groups[column].any():
                self._collect(into, groups.with_columns(pl.Series("cell", cells)), column)

    def is_first(self, one: Happened, kind: str, within_s: int) -> bool:
        """Whether a value of this kind was new to the process when it happened."""
        return any(
            one.second <= self.first_s.get((kind, one.process, value), -within_s - 1) + within_s
            for of, value in one.values
            if of == kind and value
        )

    def _see(self, key: tuple[str, str, str], second: int) -> None:
        if key in self.first_s:
            self.first_s[key] = min(self.first_s[key], second)
        elif len(self.first_s) < MOST:
            self.first_s[key] = second
        else:
            self.is_whole = False

    def _collect(self, into: dict[tuple[str, int], Happened], groups: pl.DataFrame, column: str) -> None:
        rows = (
            groups.filter(pl.col(column) & (pl.col("second") >= 0)).select("second", "cell", *KINDS).unique()
        )
        for second, cell, process, shape, batch in rows.sort(pl.all()).iter_rows():
            if (process, second) not in into and len(into) >= MOST:
                self.is_whole = False
                return
            happened = into.setdefault((process, second), Happened(second, process, set(), set()))
            happened.cells.add(cell)
            happened.values.update((("process", process), ("shape", shape), ("batch", batch)))
