"""The tail alone: too many requests beyond the quantiles of the baseline, while the median may stay."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from pyrometer.monitor.detecting.detector import Blocks, Floats, Reading, registered
from pyrometer.quantity import Seconds


@registered("tail")
class Tail:
    """Counts, per window, requests beyond the baseline's P95 and P99, which says more than the window's own quantiles.

    Its alarm should ask for two windows in a row.

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
        warm_up: int = 2000,
    ) -> None:
        self._blocks = Blocks(window)
        self._quantiles, self._tolerated, self._digits = tuple(quantiles), tolerated, digits
        self._first: list[Floats] = []
        self._needed = math.ceil(warm_up / window)
        self._limits: Floats | None = None

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per window after warm-up."""
        for after, window in self._blocks.cut(values):
            if self._limits is None:
                self._first.append(window)
                if len(self._first) >= self._needed:
                    self._limits = np.quantile(np.concatenate(self._first), self._quantiles)
                    self._first.clear()
                continue
            yield max(self._readings(at_s, after, window, self._limits), key=lambda reading: reading.score)

    def _readings(self, at_s: Seconds, after: int, window: Floats, limits: Floats) -> Iterator[Reading]:
        for quantile, limit in zip(self._quantiles, limits, strict=True):
            beyond = int((window > limit).sum())
            share = min((1 - quantile) * self._tolerated, 0.5)
            digits = -float(stats.binom.logsf(beyond - 1, len(window), share)) / math.log(10)
            evidence = f"{beyond} of {len(window)} beyond the baseline's P{quantile * 100:g} of {limit:.4g}"
            value = float(np.quantile(window, quantile))
            yield Reading(
                at_s=at_s,
                after=after,
                score=digits / self._digits,
                value=value,
                expected=float(limit),
                evidence=evidence,
            )
