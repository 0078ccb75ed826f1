"""Events of a scanned chunk: as a list of events to those who want single ones, and as columns to those who want all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import msgspec
import numpy as np
import polars as pl

from pyrometer.trace.reading.columns import nulls
from pyrometer.trace.reading.decoding import AnyEvent
from pyrometer.trace.reading.scanning import (
    ARGS_STOP,
    ID,
    ID_KIND,
    NAME,
    NUMBER,
    ODD_ARGS,
    OTHER_ID,
    RAW,
    TEXT,
    TRIPLE,
    Scan,
    fields_of,
    key_numbers,
)
from pyrometer.trace.rows import IntArray

NARROWEST = 2**31


class ScannedEvents(Sequence[AnyEvent]):
    """Some events of a chunk, which are decoded when they are asked for.

    Args:
        scan: the chunk.
        rows: which of its events, in order of the file.
    """

    def __init__(self, scan: Scan, rows: IntArray) -> None:
        self.scan = scan
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> AnyEvent: ...
    @overload
    def __getitem__(self, index: slice) -> ScannedEvents: ...
    def __getitem__(self, index: int | slice) -> AnyEvent | ScannedEvents:
        if isinstance(index, slice):
            return ScannedEvents(self.scan, self.rows[index])
        return self.scan.decode(self.rows[[index]])[0]

    def __iter__(self) -> Iterator[AnyEvent]:
        return iter(self.scan.decode(self.rows))

    def at(self, places: Sequence[int]) -> list[AnyEvent]:
        """Those at some places, decoded together."""
        return self.scan.decode(self.rows[places])

    def names(self) -> pl.Series:
        """Names; null where there is none."""
        numbers = self.scan.fields[NAME, self.rows]
        return self.scan.names.gather(np.where(numbers < 0, len(self.scan.names) - 1, numbers))

    def ids(self) -> pl.Series | None:
        """Whole numbers that events of a flow share; None where some are no numbers."""
        kinds = self.scan.fields[ID_KIND, self.rows]
        if (kinds == OTHER_ID).any():
            return None
        return _with_nulls(pl.Series("id", self.scan.fields[ID, self.rows]), kinds > 0)

    def have_arguments(self) -> bool:
        """Whether any of them has some."""
        return bool(self.scan.fields[ARGS_STOP, self.rows].any())

    def hold(self, key: str) -> bool:
        """Whether any event of the chunk has an argument."""
        return len(self.scan.found[key_numbers()[key]][0]) > 0

    def columns(
        self, shape: type[msgspec.Struct], types: dict[str, pl.DataType | type[pl.DataType]]
    ) -> dict[str, pl.Series] | None:
        """Arguments, by the names of their fields; None where some are not what the shape says.

        Args:
            shape: of the arguments.
            types: of the columns that are wanted.
        """
        if self.scan.fields[ODD_ARGS, self.rows].any():
            return None
        place = np.full(len(self.scan), -1, np.int64)
        place[self.rows] = np.arange(len(self))
        found: dict[str, pl.Series] = {}
        for name, key, kind in fields_of(shape):
            if name in types:
                column = self._column(name, self.scan.found[key_numbers()[key]], place, kind, types[name])
                if column is None:
                    return None
                found[name] = column
        return found

    def _column(self, name: str, held: IntArray, place: IntArray, kind: int, dtype: Any) -> pl.Series | None:
        there = place[held[0]]
        mine = there >= 0
        if not mine.any():
            return nulls(name, len(self), dtype)
        if not mine.all():
            there, held = there[mine], held[:, mine]
        values = held[1]
        if kind in (TEXT, RAW):
            texts = self.scan.texts if kind == TEXT else self.scan.raws
            numbers = np.full(len(self), len(texts) - 1, np.int64)
            numbers[there] = values
            return texts.gather(numbers).alias(name)
        if kind == TRIPLE:
            dense = np.zeros((len(self), 3), np.int64)
            dense[there] = held[1:].T
            series = pl.Series(name, dense, dtype=pl.Array(pl.Int64, 3)).arr.to_list()
        else:
            if dtype == pl.Int32 and (np.abs(values) >= NARROWEST).any():
                return None
            flat = np.zeros(len(self), np.int64)
            flat[there] = values
            series = pl.Series(name, flat.view(np.float64) if kind == NUMBER else flat).cast(dtype)
        known = np.zeros(len(self), bool)
        known[there] = True
        return _with_nulls(series, known)


def _with_nulls(values: pl.Series, known: Any) -> pl.Series:
    """The same, null where a value is not known."""
    if known.all():
        return values
    if not isinstance(values.dtype, pl.List):
        return values.set(pl.Series(~known), None)
    kept: pl.DataFrame = values.to_frame().select(pl.when(pl.Series(known)).then(pl.first()))
    return kept.to_series()
