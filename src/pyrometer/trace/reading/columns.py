"""Lists of decoded values to typed columns, each in one go."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import polars as pl

from pyrometer.trace.reading.shapes import NOTHING

_LIMITS = {pl.Int32: 2**31, pl.Int64: 2**63}

ABSENT_TEXT = ("", "null")


def column(name: str, values: Sequence[Any], dtype: Any) -> tuple[pl.Series, int]:
    """A column, and how many values are out of the type's range: they become null."""
    first = values[0]
    if (first is None or first is NOTHING) and values.count(first) == len(values):
        return nulls(name, len(values), dtype), 0
    if dtype == pl.String:
        return _texts(name, values), 0
    if isinstance(dtype, pl.List):
        return _triples(name, values), 0
    try:
        return pl.Series(name, values, dtype=dtype), 0
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        limit = _LIMITS[dtype]
        fitting = [value if value is not None and -limit <= value < limit else None for value in values]
        return pl.Series(name, fitting, dtype=dtype), fitting.count(None) - values.count(None)


def whole_numbers(values: Sequence[int | str | None]) -> Sequence[int | None]:
    """Ids, also where they are quoted or hexadecimal."""
    if str in set(map(type, values)):
        return [_parsed(value) if isinstance(value, str) else value for value in values]
    return values  # type: ignore[return-value]


def _parsed(value: str) -> int | None:
    try:
        return int(value, 0)
    except ValueError:
        return None


def _texts(name: str, values: Sequence[Any]) -> pl.Series:
    """Strings as they are, JSON as its text; null where there is none."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds <= {str}:
        return pl.Series(name, values, dtype=pl.String)
    if kinds == {msgspec.Raw}:
        return _from_utf8(name, list(map(bytes, values)))
    return pl.Series(name, [None if value is None else str(value) for value in values], dtype=pl.String)


def _from_utf8(name: str, texts: list[bytes]) -> pl.Series:
    try:
        found = pl.Series(name, texts, dtype=pl.Binary).cast(pl.String)
    except pl.exceptions.ComputeError:  # not UTF-8 after all
        found = pl.Series(name, [text.decode(errors="replace") for text in texts], dtype=pl.String)
    there: pl.DataFrame = found.to_frame().select(pl.when(~pl.first().is_in(ABSENT_TEXT)).then(pl.first()))
    return there.to_series()


def nulls(name: str, count: int, dtype: Any) -> pl.Series:
    """A column without a value."""
    return pl.Series(name, [None], dtype=dtype).new_from_index(0, count)


def _triples(name: str, values: Sequence[Any]) -> pl.Series:
    """Lists of three whole numbers, flattened for the journey."""
    whole = None not in values
    filled = values if whole else [value or (0, 0, 0) for value in values]
    try:
        flat = np.fromiter(chain.from_iterable(filled), np.int64, 3 * len(values)).reshape(-1, 3)
    except (ValueError, OverflowError):
        return pl.Series(name, values, dtype=pl.List(pl.Int64), strict=False)
    found = pl.Series(name, flat, dtype=pl.Array(pl.Int64, 3)).arr.to_list()
    if whole:
        return found
    held = pl.Series([value is not None for value in values])
    there: pl.DataFrame = found.to_frame().select(pl.when(held).then(pl.first()))
    return there.to_series()
