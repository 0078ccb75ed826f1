"""Durations and delays, summarised exactly: integers, and quantiles that were observed."""

from __future__ import annotations

import polars as pl

from pyrometer.trace.records.breakdown import Distribution


def distribution(values: pl.Series) -> Distribution | None:
    """Of integers; `None` of none.

    >>> distribution(pl.Series([3, 1, 2])).median_ns
    2
    """
    values = values.drop_nulls().sort()
    if not len(values):
        return None

    def at(q: float) -> int:
        return int(values[round(q * (len(values) - 1))])

    return Distribution(
        count=len(values),
        total_ns=int(values.sum()),
        mean_ns=float(values.sum()) / len(values),
        min_ns=at(0),
        p25_ns=at(0.25),
        median_ns=at(0.5),
        p75_ns=at(0.75),
        p95_ns=at(0.95),
        p99_ns=at(0.99),
        max_ns=at(1),
    )
