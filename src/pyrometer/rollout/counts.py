"""What is counted of each version: whole numbers, so that ticks, processes and hosts add up without loss.

One observation is one decision of the router: a batch, or a unit. Times are kept as histograms of base 2^(1/32), from which both the
shares above any threshold and the mean of the logarithm follow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple, TypeVar

from pyrometer.histogram import PER_OCTAVE, Histogram, index_of, upper_bound
from pyrometer.record import Record, doc

Buckets = dict[int, int]
_Key = TypeVar("_Key", str, int)

ERRORS = "errors"
NOT_FINITE = "not-finite"
OUT_OF_MEMORY = "out-of-memory"
COMPARED = "compared"
DISAGREED = "disagreed"
LATENCY = "latency"


class Counts(Record, frozen=True, kw_only=True):
    """Of one version under one share."""

    num: Annotated[int, doc("observations")] = 0
    events: Annotated[dict[str, int], doc("observations in which something happened, by its name")] = {}
    values: Annotated[
        dict[str, dict[int, int]], doc("observations per bucket of a quantity, by its name")
    ] = {}
    most_failed_in_row: Annotated[int, doc("most observations in a row that raised, in one process")] = 0

    def num_of(self, event: str) -> int:
        """How often something happened."""
        return self.events.get(event, 0)

    def buckets(self, quantity: str) -> Buckets:
        """The histogram of a quantity."""
        return self.values.get(quantity, {})


class Level(NamedTuple):
    """Of the logarithm of a quantity: how many, their mean and variance."""

    num: int
    mean: float
    variance: float


def add_counts(several: Iterable[Counts]) -> Counts:
    """All of them together."""
    num, most, events = 0, 0, dict[str, int]()
    values = dict[str, Buckets]()
    for one in several:
        num += one.num
        most = max(most, one.most_failed_in_row)
        _add(events, one.events)
        for quantity, buckets in one.values.items():
            _add(values.setdefault(quantity, {}), buckets)
    return Counts(num=num, events=events, values=values, most_failed_in_row=most)


def _add(sums: dict[_Key, int], more: Mapping[_Key, int]) -> None:
    for key, count in more.items():
        sums[key] = sums.get(key, 0) + count


def num_above(buckets: Buckets, limit: float) -> int:
    """How many values exceed a limit that ends a bucket."""
    last = index_of(limit)
    return sum(count for index, count in buckets.items() if index > last)


def level_of(buckets: Buckets) -> Level:
    """Mean and variance of the logarithm, from the middles of the buckets.

    >>> level_of({-1: 2}).num, round(level_of({-1: 1, 31: 1}).mean, 3)
    (2, 0.336)
    """
    num = sum(buckets.values())
    if not num:
        return Level(0, 0.0, 0.0)
    step = math.log(2) / PER_OCTAVE
    mean = sum(count * (index + 0.5) for index, count in buckets.items()) / num
    squares = sum(count * (index + 0.5 - mean) ** 2 for index, count in buckets.items())
    return Level(num, mean * step, squares * step**2 / (num - 1) if num > 1 else 0.0)


def quantile(buckets: Buckets, share: float) -> float:
    """The value that a share does not exceed, as the end of its bucket; NaN without any."""
    filled = sorted(index for index, count in buckets.items() if count)
    if not filled:
        return math.nan
    ends = Histogram(counts=buckets, low=0.0, high=upper_bound(filled[-1])).quantile(share)
    return upper_bound(index_of(ends))


def bucket_end(limit: float) -> float:
    """The nearest end of a bucket at or above a limit: thresholds are put there, so that counting is exact."""
    return upper_bound(index_of(limit))
