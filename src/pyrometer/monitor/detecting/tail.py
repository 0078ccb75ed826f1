"""The tail alone: too many requests beyond the quantiles of the baseline, while the median may stay."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from pyrometer.monitor.detecting.detector import Blocks, Floats, Reading, registered
from pyrometer.quantity import Seconds

CLOSE = 3  # requests


@registered("tail")
class Tail:
    """Counts, per window, requests beyond the baseline's P95 and P99, which says more than the window's own quantiles.

    Requests beyond it that follow each other closely count once: one pause of a garbage collector holds up many. The alarm
    should ask for two windows in a row.

    Args:
        window: requests of one window.
        quantiles: of the baseline, beyond which requests are counted.
        tolerated: times as many as the baseline had are forgiven.
        digits: the alarm is due where chance would give such a count once in ten to this power windows.
        warm_up: requests from which the quantiles are learned.
    """

    def __init__(
        self,
        window: int = 200,
        quantiles: Sequence[float] = (0.95, 0.99),
        tolerated: float = 1.5,
        digits: float = 4.0,
        warm_up: int = 4000,
    ) -> None:
        self._blocks = Blocks(window)
        self._quantiles, self._tolerated, self._digits = tuple(quantiles), tolerated, digits
        self._first: list[Floats] = []
        self._needed = math.ceil(warm_up / window)
        self._limits: Floats | None = None
        self._usual: list[float] = []

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per window after warm-up."""
        for after, window in self._blocks.cut(values):
            if self._limits is None:
                self._first.append(window)
                if len(self._first) >= self._needed:
                    self._learn(np.concatenate(self._first))
                    self._first.clear()
                continue
            yield max(self._readings(at_s, after, window, self._limits), key=lambda reading: reading.score)

    def _learn(self, first: Floats) -> None:
        self._limits = np.quantile(first, self._quantiles)
        # A share of half of what independent requests would give is the least that is believed of so few.
        least = [(1 - quantile) / 2 for quantile in self._quantiles]
        found = [occasions(first > limit) / len(first) for limit in self._limits]
        self._usual = [max(pair) for pair in zip(least, found, strict=True)]

    def _readings(self, at_s: Seconds, after: int, window: Floats, limits: Floats) -> Iterator[Reading]:
        for quantile, limit, usual in zip(self._quantiles, limits, self._usual, strict=True):
            beyond = occasions(window > limit)
            share = min(usual * self._tolerated, 0.5)
            digits = -float(stats.binom.logsf(beyond - 1, len(window), share)) / math.log(10)
            evidence = (
                f"{beyond} times in {len(window)} beyond the baseline's P{quantile * 100:g} of {limit:.4g}"
            )
            value = float(np.quantile(window, quantile))
            yield Reading(
                at_s=at_s,
                after=after,
                score=digits / self._digits,
                value=value,
                expected=float(limit),
                evidence=evidence,
            )


def occasions(beyond: npt.NDArray[np.bool_]) -> int:
    """How often requests went beyond a limit, those within `CLOSE` of the last one left out.

    >>> occasions(np.array([True, True, False, True, False, False, False, False, True]))
    2
    """
    places = np.flatnonzero(beyond)
    return int((np.diff(places) > CLOSE).sum()) + 1 if len(places) else 0
