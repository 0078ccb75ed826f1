"""Texts as numbers: each text once in a list, the most frequent first, so that columns hold short numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from pyrometer.text import shortened
from pyrometer.trace.rows import IntArray

LONGEST = 400
"""Characters of a name; templates of C++ run to thousands."""


class Numbered:
    """The different texts of several columns, and each column as rows of them.

    >>> both = Numbered([pl.Series(["b", "a", "a"]), pl.Series(["c"])])
    >>> both.texts, [column.tolist() for column in both.codes]
    (['a', 'b', 'c'], [[1, 0, 0], [2]])
    """

    def __init__(self, columns: Sequence[pl.Series]) -> None:
        whole = pl.concat([column.cast(pl.String).rename("text") for column in columns]).to_frame()
        counts = whole.group_by("text", maintain_order=True).len()
        rank, place = used_first(counts["len"].to_numpy())
        self.texts: list[str] = counts["text"].gather(pl.Series(rank, dtype=pl.UInt32)).to_list()
        numbered = counts.select("text", pl.Series("code", place, dtype=pl.Int64))
        codes = whole.join(numbered, on="text", how="left", maintain_order="left")["code"].to_numpy()
        ends = np.cumsum([len(column) for column in columns])
        self.codes: list[IntArray] = [part.astype(np.int64) for part in np.split(codes, ends[:-1])]


def used_first(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Rows in order of how often each is used, and the place of each row in that order; ties stay as they were.

    >>> [part.tolist() for part in used_first(np.array([1, 5, 1]))]
    [[1, 0, 2], [1, 0, 2]]
    """
    rank = np.argsort(-counts.astype(np.int64), kind="stable")
    place = np.empty_like(rank)
    place[rank] = np.arange(len(rank))
    return rank, place


def short(name: str) -> str:
    """A name that fits, its middle left out if need be: ends tell templates apart."""
    return shortened(name, LONGEST, tail=LONGEST // 2)
