"""A figure of one course of requests, and what another course of the same kind may give."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pyrometer.bench.distributions import student_quantile
from pyrometer.quantity import Seconds
from pyrometer.record import Record

COVERAGE = 0.95
"""Of the intervals: that another course of the same kind lies within."""
NUM_BLOCKS = 8
NUM_DRAWN = 200


class Interval(Record, frozen=True, kw_only=True):
    """A figure with what another course of the same kind may give."""

    value: float
    low: float
    high: float

    def holds(self, measured: float) -> bool:
        """Whether a measured figure is one of those that were to be expected."""
        return self.low <= measured <= self.high


def measured(latencies_s: Sequence[Seconds], share: float) -> Interval:
    """A quantile of latencies in their order, and what it may be in another such course.

    Blocks are drawn again, as a machine that is busy is so for a while, and half as many as there are: a few slow moments decide a
    high quantile, and all of them drawn with replacement would tell too little of those that are not among them.
    """
    taken = np.asarray(latencies_s)
    blocks = np.array_split(taken, min(len(taken), NUM_BLOCKS))
    random = np.random.default_rng(0)
    logs = [
        math.log(np.quantile(np.concatenate([blocks[place] for place in drawn]), share))
        for drawn in random.integers(len(blocks), size=(NUM_DRAWN, -(-len(blocks) // 2)))
    ]
    freedom = max(len(blocks) - 1, 1)
    spread = math.sqrt(2 * (freedom + 1) / freedom) * float(np.std(logs, ddof=1))
    reach = math.exp(student_quantile((1 + COVERAGE) / 2, freedom) * spread)
    value = float(np.quantile(taken, share))
    return Interval(value=value, low=value / reach, high=value * reach)


def of_replays(values: list[float]) -> Interval:
    """What one more course gives, from so few: by the spread of their logarithms, and at least from the least to the most that was seen."""
    seen = np.array([value for value in values if value > 0])
    low, high = min(values), max(values)
    if len(seen) == len(values) > 1:
        logs = np.log(seen)
        reach = (
            student_quantile((1 + COVERAGE) / 2, len(logs) - 1)
            * logs.std(ddof=1)
            * math.sqrt(1 + 1 / len(logs))
        )
        low, high = min(low, math.exp(logs.mean() - reach)), max(high, math.exp(logs.mean() + reach))
    return Interval(value=float(np.median(values)), low=float(low), high=float(high))
