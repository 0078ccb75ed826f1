"""Shifts and drifts of the level: cumulative sums over medians of blocks.

Latencies are judged on the log scale, where +20 % is the same step at 1 ms and at 1 s. The median of a block keeps the heavy
tail out, which fires detectors of single requests hundreds of times in 100,000 (see `benchmarks/detectors.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pyrometer.monitor.detecting.baseline import Baseline, Season
from pyrometer.monitor.detecting.detector import Blocks, Floats, Reading, registered
from pyrometer.quantity import Seconds

CLIP = 3.0  # spreads that one block counts for at most; one short pause then raises no alarm
SUSPICIOUS = 0.25  # of the limit: from there on nothing is learned


@registered("cusum")
class Cusum:
    """Two cumulative sums of deviations from a baseline, for a level that rises or falls.

    Args:
        block: values of which the median is taken.
        slack: spreads per block that are forgiven; half the shift that is to be found.
        limit: cumulative spreads at which the alarm is due.
        warm_up: blocks from which the baseline is learned.
        memory: blocks over which it follows slow changes.
        both: whether a fall counts, too.
        logarithmic: whether ratios matter; for values above 0.
        season: a period that repeats.
    """

    def __init__(
        self,
        *,
        block: int = 25,
        slack: float = 0.5,
        limit: float = 8.0,
        warm_up: int = 160,
        memory: int = 400,
        both: bool = False,
        logarithmic: bool = True,
        season: Season | None = None,
    ) -> None:
        self._blocks = Blocks(block)
        self._slack, self._limit, self._both = slack, limit, both
        self._logarithmic = logarithmic
        self._baseline = Baseline(warm_up, memory, season=season)
        self._up = self._down = 0.0

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per full block, once the baseline is learned."""
        for after, block in self._blocks.cut(values):
            median = float(np.median(block))
            level = math.log(max(median, 1e-12)) if self._logarithmic else median
            deviation = self._baseline.deviation(at_s, level)
            if deviation is not None:
                self._sum(min(max(deviation, -CLIP), CLIP))
            score = max(self._up, self._down if self._both else 0.0) / self._limit
            if max(self._up, self._down) < SUSPICIOUS * self._limit:
                self._baseline.learn(at_s, level)
            if deviation is not None:
                yield self._reading(at_s, after, score, median)

    def _sum(self, deviation: float) -> None:
        slack = self._slack + self._baseline.uncertainty
        # No higher than twice the limit, so that an alarm can end within as many blocks as it took.
        self._up = min(max(0.0, self._up + deviation - slack), 2 * self._limit)
        self._down = min(max(0.0, self._down - deviation - slack), 2 * self._limit)

    def _reading(self, at_s: Seconds, after: int, score: float, median: float) -> Reading:
        normal = self._baseline.expected(at_s)
        expected = math.exp(normal) if self._logarithmic else normal
        evidence = f"median of the last block {median:.4g}, normal is {expected:.4g}"
        return Reading(
            at_s=at_s, after=after, score=score, value=median, expected=expected, evidence=evidence
        )


@registered("page-hinkley")
class PageHinkley:
    """Page's test against the mean of all values so far, for any signal; the sum forgets nothing.

    Args:
        tolerance: of a value above the mean, in spreads of the warm-up.
        limit: cumulative spreads at which the alarm is due.
        warm_up: values from which mean and spread are learned first.
    """

    def __init__(self, tolerance: float = 0.5, limit: float = 25.0, warm_up: int = 80) -> None:
        self._tolerance, self._limit = tolerance, limit
        self._baseline = Baseline(warm_up, memory=1 << 30)
        self._sum = self._least = 0.0

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per value after warm-up."""
        for after, (_, one) in enumerate(Blocks(1).cut(values), 1):
            value = float(one[0])
            deviation = self._baseline.deviation(at_s, value)
            if deviation is not None:
                self._sum += min(max(deviation, -CLIP), CLIP) - self._tolerance
                self._least = min(self._least, self._sum)
                score, expected = (self._sum - self._least) / self._limit, self._baseline.centre
                evidence = f"{value:.4g}, mean so far {expected:.4g}"
                yield Reading(
                    at_s=at_s, after=after, score=score, value=value, expected=expected, evidence=evidence
                )
            self._baseline.learn(at_s, value)
