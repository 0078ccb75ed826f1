"""Counts from which every answer about a log follows; they add up, so that tables may come in any order and number.

Latencies are counted in buckets of base 2^(1/32), per stretch of time and per cell, a combination of the features of a
request. Time is divided into at most `MOST_STRETCHES`: when there are more, neighbours are added up and stretches
become twice as long.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.histogram import PER_OCTAVE, index_of
from pyrometer.monitor.logs.appearances import Appearances
from pyrometer.monitor.logs.clusters import Clusters

Counts: TypeAlias = npt.NDArray[np.int64]

FEATURES = ("call", "version", "device", "shape", "batch")
"""What a cell is made of."""
LEAST_BIN = index_of(1e-8)
BINS = index_of(1e4) - LEAST_BIN + 1
MOST_STRETCHES = 1440
MOST_CELLS = 4000
MOST_PAIRS = 400_000
OTHER = ("other",) * len(FEATURES)
"""The cell of all combinations beyond `MOST_CELLS`."""

# Lines say what was compiled within their second.
_COMPILED = pl.col("compilations") > 0
_BROKE = pl.col("graph_breaks") > 0
_SELECTED = pl.col("event").is_in(["slow", "error"])


class Grid:
    """Rows of counts that are made when they are first needed.

    >>> grid = Grid(3)
    >>> grid.add(np.array([5, 7, 5]), np.array([0, 2, 0]), np.array([1, 1, 4]))
    >>> grid.row(5).tolist(), grid.row(7).tolist()
    ([5, 0, 0], [0, 0, 1])
    """

    def __init__(self, width: int) -> None:
        self._rows: dict[int, int] = {}
        self._counts = np.zeros((16, width), np.int64)

    def add(self, keys: Counts, columns: Counts, counts: Counts) -> None:
        """Add counts at each key and column."""
        if not len(keys):
            return
        least = int(keys.min())
        offsets = keys - least
        if int(offsets.max()) < 4 * len(keys):  # close together, as they mostly are: no need to sort
            distinct = np.flatnonzero(np.bincount(offsets))
            places = np.empty(int(distinct[-1]) + 1, np.int64)
            places[distinct] = [self._place(least + int(offset)) for offset in distinct]
            rows = places[offsets]
        else:
            distinct, inverse = np.unique(keys, return_inverse=True)
            rows = np.asarray([self._place(int(key)) for key in distinct], np.int64)[inverse]
        np.add.at(self._counts, (rows, columns), counts)

    def _place(self, key: int) -> int:
        row = self._rows.setdefault(key, len(self._rows))
        if row == len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
        return row

    def __len__(self) -> int:
        return len(self._rows)

    def keys(self) -> list[int]:
        """Every key, in rising order."""
        return sorted(self._rows)

    def row(self, key: int) -> Counts:
        """The counts at a key."""
        row: Counts = self._counts[self._rows[key]]
        return row

    def halved(self) -> Grid:
        """The same with pairs of keys added up."""
        grid = Grid(self._counts.shape[1])
        for key, row in self._rows.items():
            place = grid._place(key // 2)  # first: it may move the counts
            grid._counts[place] += self._counts[row]
        return grid


class Tally:
    """Everything that is kept of a log."""

    def __init__(self) -> None:
        self.lines = self.num_slow = self.num_without_time = 0
        self.left_out: Counter[str] = Counter()
        self.stretch_s = 1
        self.first_s, self.last_s = 1 << 62, -1
        # Behind the buckets of latency stand the errors, and all lines.
        self.times = Grid(BINS + 2)
        self.hours = Grid(BINS)
        self.cells = Grid(BINS)
        self.names: dict[tuple[str, ...], int] = {}
        self.lines_of = Grid(1)  # per cell, with a latency or without
        self.shares: Counter[tuple[int, int]] = Counter()  # lines per stretch and cell
        self.has_all_shares = True
        self.appearances = Appearances()
        self.clusters = Clusters()

    def add(self, table: pl.DataFrame) -> None:
        """Take in the lines of a table."""
        has_time = table["timestamp"].is_not_null()
        if not has_time.all():
            missing = int((~has_time).sum())
            self.left_out["foreign"] += missing
            table = table.filter(has_time)
        self.lines += table.height
        self.clusters.add(table)
        if table.height:
            self._count(_grouped(table), table)

    def _count(self, groups: pl.DataFrame, table: pl.DataFrame) -> None:
        seconds = groups["second"].to_numpy()
        known = seconds >= 0
        self.num_without_time += int(groups["lines"].to_numpy()[~known].sum())
        self.num_slow += int((table["event"] == "slow").sum())
        combined, cells = self._cells(groups)
        bins, lines = groups["bin"].to_numpy(), groups["lines"].to_numpy()
        timed = known & (bins >= 0)
        self._add_times(seconds, bins, lines, groups["errors"].to_numpy(), known)
        self.hours.add(seconds[timed] // 3600 % 24, bins[timed], lines[timed])
        measured = bins >= 0
        self.cells.add(cells[measured], bins[measured], lines[measured])
        self.lines_of.add(cells, np.zeros(len(cells), np.int64), lines)
        self._add_shares(seconds[known] // self.stretch_s, cells[known], lines[known])
        if known.any():
            self.first_s = min(self.first_s, int(seconds[known].min()))
            self.last_s = max(self.last_s, int(seconds[known].max()))
        self.appearances.add(groups, cells, combined)
        while len(self.times) > MOST_STRETCHES:
            self._coarsen()

    def _add_times(
        self, seconds: Counts, bins: Counts, lines: Counts, errors: Counts, known: npt.NDArray[np.bool_]
    ) -> None:
        keys = seconds // self.stretch_s
        timed = known & (bins >= 0)
        self.times.add(keys[timed], bins[timed], lines[timed])
        self.times.add(keys[known], np.full(int(known.sum()), BINS), errors[known])
        self.times.add(keys[known], np.full(int(known.sum()), BINS + 1), lines[known])

    def _add_shares(self, keys: Counts, cells: Counts, lines: Counts) -> None:
        pairs, inverse = np.unique(keys * (MOST_CELLS + 1) + cells, return_inverse=True)
        sums = np.bincount(inverse, weights=lines).astype(np.int64)
        for pair, count in zip(pairs.tolist(), sums.tolist(), strict=True):
            place = divmod(pair, MOST_CELLS + 1)
            if place in self.shares or len(self.shares) < MOST_PAIRS:
                self.shares[place] += count
            else:
                self.has_all_shares = False

    def _cells(self, groups: pl.DataFrame) -> tuple[pl.DataFrame, Counts]:
        """Each combination of a process and features, and the cell of each group."""
        key = ["process", *FEATURES]
        since = pl.col("second").filter(pl.col("second") >= 0).min().alias("since")
        combined = groups.group_by(key, maintain_order=True).agg(since)
        numbers = [self._number(row) for row in combined.select(FEATURES).iter_rows()]
        cell = pl.Series("cell", numbers, pl.Int64)
        joined = groups.select(key).join(
            combined.select(key).with_columns(cell), on=key, how="left", maintain_order="left"
        )
        return combined, joined["cell"].to_numpy()

    def _number(self, row: tuple[Any, ...]) -> int:
        name = tuple(str(value) for value in row)
        if name not in self.names and len(self.names) >= MOST_CELLS - 1:
            name = OTHER
        return self.names.setdefault(name, len(self.names))

    def _coarsen(self) -> None:
        self.times = self.times.halved()
        self.stretch_s *= 2
        halved: Counter[tuple[int, int]] = Counter()
        for (key, cell), count in self.shares.items():
            halved[key // 2, cell] += count
        self.shares = halved


def _grouped(table: pl.DataFrame) -> pl.DataFrame:
    """Lines per second, process, cell and bucket of latency; -1 stands for no time, and for no latency.

    Texts are put together once per group, not once per line.
    """
    whole = ((pl.col("latency_s").log(2) * PER_OCTAVE).ceil() - 1 - LEAST_BIN).clip(0, BINS - 1)
    usable = (pl.col("latency_s") > 0) & pl.col("latency_s").is_finite() & ~_SELECTED.fill_null(value=False)
    second = pl.col("timestamp").str.slice(0, 19).alias("second")
    bins = pl.when(usable).then(whole).otherwise(-1).fill_null(-1).cast(pl.Int32).alias("bin")
    groups = (
        table.lazy()
        .group_by(second, "host", "pid", *FEATURES, bins)
        .agg(
            pl.len().cast(pl.Int64).alias("lines"),
            (pl.col("error").fill_null("") != "").sum().cast(pl.Int64).alias("errors"),
            _COMPILED.any().alias("recompiles"),
            _BROKE.any().alias("breaks"),
        )
    )
    unix = pl.col("second").str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False).dt.epoch("s")
    process = pl.concat_str("host", "pid", separator=":", ignore_nulls=True).alias("process")
    features = [pl.col(name).cast(pl.String).fill_null("") for name in FEATURES]
    return groups.with_columns(unix.fill_null(-1), process, *features, pl.col("bin").cast(pl.Int64)).collect()
