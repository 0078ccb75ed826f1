"""How much longer the slowest of many ranks takes than one of them: a step that ends with a collective waits for it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from pyrometer.quantity import Ratio, Seconds

LEAST_SAMPLES = 8


def expected_slowest(times_s: Sequence[Seconds], ranks: int, waits: int = 1) -> Ratio:
    """The median of the slowest of so many independent steps, over the median step: both are medians, as what is measured is.

    Exact for the steps that were measured while `ranks` is far below their number; beyond it a log-normal distribution with
    their spread (scaled median absolute deviation, so that a few interruptions do not make it) goes on where they end.

    Of a step that waits several times each part varies alone: their spreads add up as squares, what the slowest of each costs as it is.
    What goes beyond that spread are interruptions, which hit one part of a step, however many there are.

    >>> expected_slowest([1.0] * 50, 1024)
    1.0
    """
    if len(times_s) < LEAST_SAMPLES or ranks < 2:
        return 1.0
    ordered = np.asarray(times_s) / np.median(times_s)
    share = 0.5 ** (1 / ranks)  # of the steps that are no longer than the slowest is in every other turn
    spread = stats.median_abs_deviation(np.log(ordered), scale="normal")
    usual = whole = float(np.expm1(spread * stats.norm.ppf(share)))
    if ranks <= len(ordered) // 4:
        whole = max(0.0, float(np.quantile(ordered, share)) - 1)
        usual = min(usual, whole)
    return 1 + usual * math.sqrt(waits) + whole - usual
