"""Events of a chunk as columns, read by the compiled module; where that cannot, or is missing, msgspec reads the chunk.

The module reads what is plain, in one pass and without an object per event. It gives up a chunk in which anything is odd,
and marks events whose arguments are. What is needed of single events is decoded from their text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import polars as pl

from pyrometer.native import compiled
from pyrometer.trace.reading import shapes
from pyrometer.trace.reading.arguments import SHAPES
from pyrometer.trace.reading.decoding import DECODE_ERRORS, AnyEvent, decode_list, decoder
from pyrometer.trace.rows import IntArray, each_once

Token = int | float | str | None

BEGIN, STOP, SORT, NAME, TS, DUR, ID, ID_KIND, ARGS_BEGIN, ARGS_STOP, ODD_ARGS = range(11)
"""Columns of what the module gives of each event."""

PH, CAT, PID, TID, NAMES, TEXTS, RAWS = range(7)
"""Tables of different texts."""

OTHER_ID = 2
WHOLE, NUMBER, TEXT, RAW, TRIPLE = range(5)
TYPES = MappingProxyType(
    {
        shapes.Whole: WHOLE,
        shapes.Number: NUMBER,
        shapes.Text: TEXT,
        msgspec.Raw: RAW,
        tuple[int, int, int] | None: TRIPLE,
    }
)
"""Type of an argument: what the module takes it for."""


@cache
def fields_of(shape: type[msgspec.Struct]) -> tuple[tuple[str, str, int], ...]:
    """Of each field of a shape its name, its key in the file, and what its value is."""
    return tuple((spec.name, spec.encode_name, TYPES[spec.type]) for spec in msgspec.structs.fields(shape))


@cache
def keys() -> tuple[tuple[bytes, int], ...]:
    """Keys of arguments that any kind of event knows, with what their values are."""
    found: dict[str, int] = {}
    for shape in SHAPES.values():
        for _, key, kind in fields_of(shape):
            assert found.setdefault(key, kind) == kind, key
    return tuple((key.encode(), kind) for key, kind in found.items())


@cache
def key_numbers() -> dict[str, int]:
    """The place of each in `keys`."""
    return {key.decode(): i for i, (key, _) in enumerate(keys())}


@dataclass
class Scan:
    """A chunk that was read: `fields` has a row per event, `found` the values of each key with the rows that have one."""

    text: bytes
    used: int
    ended: bool
    coarse: bool  # some starts are so large that floats would not tell their nanosecond
    fields: IntArray  # (columns, events)
    sorts: list[tuple[Any, ...]]  # ph, cat, pid and tid, in the order in which the file first combines them
    tables: list[Sequence[Any]]
    found: tuple[IntArray, ...]  # per key (rows and values, one column each value)

    def __len__(self) -> int:
        return len(self.fields[BEGIN])

    def decode(self, rows: IntArray) -> list[AnyEvent]:
        """Some events, one by one."""
        view = memoryview(self.text)
        places = zip(self.fields[BEGIN, rows].tolist(), self.fields[STOP, rows].tolist(), strict=True)
        return decode_list(b"[" + b",".join(view[low:high] for low, high in places) + b"]", shapes.ExactEvent)

    @cached_property
    def names(self) -> pl.Series:
        """The different names, and behind them none."""
        return pl.Series("name", [*self.tables[NAMES], None], dtype=pl.String)

    @cached_property
    def texts(self) -> pl.Series:
        """The different texts of arguments, and behind them none."""
        return pl.Series([*self.tables[TEXTS], None], dtype=pl.String)

    @cached_property
    def raws(self) -> pl.Series:
        """The different values that are kept as JSON, and behind them none."""
        held = [None if raw == b"null" else raw.decode() for raw in map(bytes, self.tables[RAWS])]
        return pl.Series([*held, None], dtype=pl.String)


def scan(text: bytes, start: int, *, final: bool) -> Scan | None:
    """Read the events from `start` on, up to the last one that another follows; None where that takes msgspec.

    Args:
        text: begins, at `start`, with an event.
        start: where.
        final: no text follows, so that the list has to end here.
    """
    module = compiled()
    found = None if module is None else module.scan(text, start, keys())
    if found is None:
        return None
    used, ended, coarse, events, sorts, hard, tables, columns = found
    fields = np.ascontiguousarray(np.frombuffer(events, np.int64).reshape(-1, 11).T)
    if not fields.shape[1] or (final and not ended):
        return None
    try:
        if not text.isascii():
            str(memoryview(text)[start:used], "utf-8")
        decoded = _decoded(tables)
        values = _columns(columns, np.frombuffer(hard, np.int64).reshape(-1, 4), text, fields)
    except DECODE_ERRORS:
        return None
    return Scan(
        text,
        used,
        bool(ended),
        bool(coarse),
        fields,
        [
            (decoded[PH][ph] if ph >= 0 else "X", *map(_at, decoded[CAT : TID + 1], rest))
            for ph, *rest in np.frombuffer(sorts, np.int64).reshape(-1, 4).tolist()
        ],
        decoded,
        values,
    )


def _at(table: Sequence[Any], code: int) -> Any:
    """What a number stands for; -1 for a key that is not there."""
    return table[code] if code >= 0 else None


def _decoded(tables: Sequence[bytes]) -> list[Sequence[Any]]:
    kinds: list[Any] = [list[str], *[list[str | None]], *[list[Token]] * 2, *[list[str | None]] * 2]
    return [
        *(decoder(kind).decode(table) for kind, table in zip(kinds, tables, strict=False)),
        decoder(list[msgspec.Raw]).decode(tables[RAWS]),
    ]


def _columns(columns: Sequence[bytes], hard: IntArray, text: bytes, fields: IntArray) -> tuple[IntArray, ...]:
    """The values of each key; numbers that are not exact as they stand are read by Python."""
    found = tuple(
        np.frombuffer(column, np.int64).reshape(-1, 4 if kind == TRIPLE else 2).T
        for column, (_, kind) in zip(columns, keys(), strict=True)
    )
    held = hard[hard[:, 0] < fields.shape[1]]
    if not len(held):
        return found
    found = tuple(column.copy() for column in found)
    for key in each_once(held[:, 1]).tolist():
        rows, _, at, length = held[held[:, 1] == key].T
        stop = (at + length).tolist()
        values = np.array([float(text[low:high]) for low, high in zip(at.tolist(), stop, strict=True)])
        if np.isinf(values).any():
            raise ValueError(keys()[key])
        found[key][1, np.searchsorted(found[key][0], rows)] = values.view(np.int64)
    return found
