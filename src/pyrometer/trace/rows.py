"""Rows of a table as whole numbers, -1 for none: what linking, analyses and the dependency graph calculate with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def row_numbers(values: pl.Series) -> IntArray:
    """A column of whole numbers as an array; -1 for null.

    >>> row_numbers(pl.Series([3, None], dtype=pl.Int32)).tolist()
    [3, -1]
    """
    whole = values.cast(pl.Int64)
    return np.asarray((whole.fill_null(-1) if whole.null_count() else whole).to_numpy(), np.int64)


def nullable(rows: IntArray, dtype: type[pl.DataType] = pl.UInt32) -> pl.Series:
    """The other way round: a column in which rows below 0 are null.

    >>> nullable(np.array([3, -1])).to_list()
    [3, None]
    """
    values = pl.Series(rows, dtype=pl.Int64)
    cast: pl.Series = values.set(values < 0, None).cast(dtype)
    return cast


def pick(values: pl.Series, rows: IntArray) -> pl.Series:
    """The values of some rows; null for rows below 0.

    >>> pick(pl.Series(["a", "b"]), np.array([1, -1])).to_list()
    ['b', None]
    """
    return values.gather(nullable(rows))


def mask_of(frame: pl.DataFrame, wanted: pl.Expr) -> Mask:
    """Which rows fulfil a condition; where it is null they do not.

    >>> mask_of(pl.DataFrame({"a": [1, None]}), pl.col("a") == 1).tolist()
    [True, False]
    """
    return np.array(frame.select(wanted.fill_null(value=False)).to_series().to_numpy(), np.bool_)


def positions(rows: IntArray, height: int) -> IntArray:
    """The place of each row of a table in a list of rows; -1 for those that it leaves out, and at the end, for none.

    >>> positions(np.array([2, 0]), 3).tolist()
    [1, -1, 0, -1]
    """
    found = np.full(height + 1, -1, np.int64)
    found[rows] = np.arange(len(rows))
    return found


def distinct(rows: IntArray) -> IntArray:
    """Rows of a table, each once and in order, -1 for none among them: many times faster than sorting or hashing them.

    >>> distinct(np.array([4, -1, 2, 4])).tolist()
    [-1, 2, 4]
    """
    return np.flatnonzero(np.bincount(rows + 1)) - 1


def among(rows: IntArray, wanted: IntArray) -> Mask:
    """Which of some rows, or other small numbers, are wanted; -1 never is. Many times faster than `np.isin`.

    >>> among(np.array([4, -1, 2]), np.array([-1, 4])).tolist()
    [True, False, False]
    """
    held = np.zeros(int(max(rows.max(initial=-1), wanted.max(initial=-1))) + 2, np.bool_)
    held[wanted] = True
    held[-1] = False
    found: Mask = held[rows]
    return found


def each_once(numbers: IntArray) -> IntArray:
    """The different numbers of any size, in order; `np.unique` hashes them, which takes many times longer.

    >>> each_once(np.array([9, -4, 9])).tolist()
    [-4, 9]
    """
    ordered = np.sort(numbers)
    once: IntArray = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return once


def numbered(rows: IntArray) -> tuple[IntArray, IntArray]:
    """The distinct rows, and for each row which of them it is.

    >>> [part.tolist() for part in numbered(np.array([4, -1, 2, 4]))]
    [[-1, 2, 4], [2, 0, 1, 2]]
    """
    held = np.bincount(rows + 1) > 0
    return np.flatnonzero(held) - 1, (np.cumsum(held) - 1)[rows + 1]


def ranges(first: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """The numbers of many ranges one after the other: which range each is of, and the numbers.

    >>> [part.tolist() for part in ranges(np.array([5, 0]), np.array([2, 3]))]
    [[0, 0, 1, 1, 1], [5, 6, 0, 1, 2]]
    """
    owner = np.repeat(np.arange(len(first)), count)
    return owner, np.arange(int(count.sum())) + np.repeat(first - (np.cumsum(count) - count), count)
