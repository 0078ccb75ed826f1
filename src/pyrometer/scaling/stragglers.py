"""How much longer the slowest of many ranks takes than one of them: a step that ends with a collective waits for it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from pyrometer.quantity import Ratio, Seconds

LEAST_SAMPLES = 8


def expected_slowest(times_s: Sequence[Seconds], ranks: int) -> Ratio:
    """The mean of the slowest of so many independent steps, over the median step.

    Exact for the steps that were measured while `ranks` is far below their number; beyond it a log-normal distribution with
    their spread (scaled median absolute deviation, so that a few interruptions do not make it) goes on where they end.

    >>> expected_slowest([1.0] * 50, 1024)
    1.0
    """
    if len(times_s) < LEAST_SAMPLES or ranks < 2:
        return 1.0
    ordered = np.sort(np.asarray(times_s)) / np.median(times_s)
    number = len(ordered)
    if ranks <= number // 4:
        below = np.arange(number + 1) / number
        chances = np.diff(below**ranks)
        return max(1.0, float(chances @ ordered))
    spread = stats.median_abs_deviation(np.log(ordered), scale="normal")
    # The mean of the largest of n normal values, by Blom: the quantile at (n - 3/8) / (n + 1/4).
    return float(np.exp(spread * stats.norm.ppf((ranks - 0.375) / (ranks + 0.25))))
