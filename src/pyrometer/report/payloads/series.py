"""Calculations on a series of samples, for drawing: thinning, blocks, autocorrelation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

import numpy as np

from pyrometer.bench.autocorrelation import Floats
from pyrometer.bench.quantiles import estimate_quantile
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc

MOST_POINTS = 5000
MOST_BLOCKS = 20
FEWEST_IN_BLOCK = 15
BLOCK_CONFIDENCE = 0.95
MOST_LAGS = 40
FEWEST_FOR_LAGS = 20
BAND_Z = 1.96


class TimeBlock(Record, frozen=True, kw_only=True):
    """A stretch of samples that follow each other."""

    first: Annotated[int, doc("index of its first sample")]
    end: Annotated[int, doc("index after its last sample")]
    median_s: Seconds
    low_s: Annotated[
        Seconds | None, doc("95 % interval of its median; null where so few samples cannot bound it")
    ]
    high_s: Seconds | None


class Correlogram(Record, frozen=True, kw_only=True):
    """How alike samples are that lie so many samples apart."""

    values: Annotated[list[float], doc("autocorrelation at lags 1, 2, …")]
    band: Annotated[float, doc("independent samples stay within ± this at 95 % of the lags")]
    beyond: Annotated[int, doc("lags outside of the band")]
    every: Annotated[int, doc("samples between two that were kept; a lag is so many samples")]


def time_blocks(values: Floats) -> list[TimeBlock]:
    """Consecutive stretches of nearly equal length, each with its median; none with fewer than 30 samples.

    As many as 20, of at least 15 samples each. Their intervals cover 95 %: at 99 % so few samples bound hardly anything.
    """
    count = min(len(values) // FEWEST_IN_BLOCK, MOST_BLOCKS)
    if count < 2:
        return []
    ends = np.linspace(0, len(values), count + 1).round().astype(int).tolist()
    blocks = []
    for first, end in pairwise(ends):
        median = estimate_quantile(values[first:end], 0.5, BLOCK_CONFIDENCE)
        blocks.append(
            TimeBlock(first=first, end=end, median_s=median.value_s, low_s=median.low_s, high_s=median.high_s)
        )
    return blocks


def correlogram(values: Floats, every: int = 1) -> Correlogram | None:
    """The autocorrelation `r(k) = Σ (x[t] - m)(x[t+k] - m) / Σ (x[t] - m)²` at lags 1 to 40, at most a quarter of the series.

    Of n independent samples r(k) is nearly normal with mean 0 and variance 1/n, so that 95 % of the lags lie within
    ±1.96/√n (Bartlett, On the theoretical specification and sampling properties of autocorrelated time-series, 1946).
    `None` for fewer than 20 samples, or samples that are all equal.

    Args:
        values: in time order.
        every: how many samples lie between two that were kept.
    """
    n = len(values)
    if n < FEWEST_FOR_LAGS:
        return None
    centred = values - values.mean()
    total = float(centred @ centred)
    if total <= 1e-300:
        return None
    lags = range(1, min(MOST_LAGS, n // 4) + 1)
    found = [float(centred[:-lag] @ centred[lag:]) / total for lag in lags]
    band = BAND_Z / math.sqrt(n)
    beyond = sum(abs(value) > band for value in found)
    return Correlogram(values=[round(value, 4) for value in found], band=band, beyond=beyond, every=every)


def rounded(values: Sequence[float], digits: int = 6) -> list[float]:
    """With so many significant digits: more than a drawing shows, at half the size.

    >>> rounded([0.0123456789, 1.0])
    [0.0123457, 1.0]
    """
    return [float(f"{value:.{digits}g}") for value in values]
