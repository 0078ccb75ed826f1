"""Histograms of base 2^(1/32), which all merge without loss: those of benchmarks, monitors and canaries.

Bucket `i` holds what lies above 2^(i/32) and up to 2^((i+1)/32), which is scale 5 of OpenTelemetry's exponential histograms. A
quantile is off by at most 1.1 %; times from 1 µs to 100 s fall into 851 buckets, of which only those with something in them are kept.

>>> second = Histogram.of([0.010, 0.011, 0.012, 0.250])
>>> minute = merge([second, second])
>>> minute.count, round(minute.quantile(0.5), 4), minute.num_above(0.1)
(8, 0.0109, 2)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import numpy as np

from pyrometer.record import Record, doc

SCALE = 5
"""Of OpenTelemetry; a bucket is 2^(2^-5) wide."""
PER_OCTAVE = 1 << SCALE
LEAST = 1e-12
"""What is smaller counts as zero: a clock does not tell it from zero."""
_FEW = 64
"""Below so many values a loop of Python is cheaper than the calls of numpy."""


class Histogram(Record, frozen=True, kw_only=True):
    """How often values fell into which bucket; not negative ones, and their exact sum and extremes."""

    counts: Annotated[dict[int, int], doc("values per bucket; bucket i ends at 2^((i+1)/32)")] = {}
    zeros: Annotated[int, doc("values of zero, and those too small to tell from it")] = 0
    sum: Annotated[float, doc("of all values")] = 0.0
    low: Annotated[float | None, doc("the least value; null without any")] = None
    high: Annotated[float | None, doc("the largest value; null without any")] = None

    @classmethod
    def of(cls, values: Sequence[float] | Any) -> Histogram:
        """A histogram of values that are finite and not negative; others are left out.

        >>> Histogram.of([1.0, 1.5]).counts
        {-1: 1, 18: 1}
        """
        return _of_few(values) if len(values) <= _FEW else _of_many(np.asarray(values, np.float64))

    @property
    def count(self) -> int:
        """How many values there are."""
        return self.zeros + sum(self.counts.values())

    @property
    def mean(self) -> float:
        """Of all values; NaN without any."""
        return self.sum / self.count if self.count else math.nan

    def quantile(self, share: float) -> float:
        """The value that `share` of all do not exceed, within 1.1 %; NaN without any."""
        if self.low is None or self.high is None:
            return math.nan
        rank = share * (self.count - 1)
        passed = self.zeros
        if rank < passed:
            return self.low
        for index in sorted(self.counts):
            passed += self.counts[index]
            if rank < passed:
                return min(max(math.exp2((index + 0.5) / PER_OCTAVE), self.low), self.high)
        return self.high

    def num_above(self, limit: float) -> int:
        """How many values exceed a limit; exact for those that end a bucket, such as powers of two."""
        last = index_of(limit)
        return sum(count for index, count in self.counts.items() if index > last)


def index_of(value: float) -> int:
    """The bucket of one value.

    >>> index_of(1.0), index_of(1.0001), index_of(2.0)
    (-1, 0, 31)
    """
    return math.ceil(math.log2(max(value, LEAST)) * PER_OCTAVE) - 1


def upper_bound(index: int) -> float:
    """Where a bucket ends; its end belongs to it."""
    return math.exp2((index + 1) / PER_OCTAVE)


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """The histogram of all values together: of a window from its seconds, of a fleet from its processes."""
    counts: dict[int, int] = {}
    zeros, total = 0, 0.0
    low, high = math.inf, -math.inf
    for one in histograms:
        if one.low is None or one.high is None:
            continue
        for index, count in one.counts.items():
            counts[index] = counts.get(index, 0) + count
        zeros += one.zeros
        total += one.sum
        low, high = min(low, one.low), max(high, one.high)
    if low == math.inf:
        return Histogram()
    return Histogram(counts=counts, zeros=zeros, sum=total, low=low, high=high)


def _of_few(values: Iterable[float]) -> Histogram:
    kept = [float(value) for value in values if 0 <= value < math.inf]
    if not kept:
        return Histogram()
    counts: dict[int, int] = {}
    zeros = 0
    for value in kept:
        if value < LEAST:
            zeros += 1
        else:
            index = index_of(value)
            counts[index] = counts.get(index, 0) + 1
    return Histogram(counts=counts, zeros=zeros, sum=math.fsum(kept), low=min(kept), high=max(kept))


def _of_many(values: Any) -> Histogram:
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high < math.inf):  # a NaN compares as false
        values = values[(values >= 0) & (values < math.inf)]
        if len(values) <= _FEW:
            return _of_few(values.tolist())
        low, high = float(values.min()), float(values.max())
    positive = values if low >= LEAST else values[values >= LEAST]
    zeros = len(values) - len(positive)
    if not len(positive):
        return Histogram(zeros=zeros, sum=float(values.sum()), low=low, high=high)
    indices = np.ceil(np.log2(positive) * PER_OCTAVE).astype(np.int64) - 1
    first = int(indices.min())
    dense = np.bincount(indices - first)
    filled = np.flatnonzero(dense)
    counts = dict(zip((filled + first).tolist(), dense[filled].tolist(), strict=True))
    return Histogram(counts=counts, zeros=zeros, sum=float(values.sum()), low=low, high=high)
