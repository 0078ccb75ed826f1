"""How much slower a step is under the profiler: an exact interval from few steps."""

from __future__ import annotations

import math
from functools import cache
from statistics import median
from typing import NamedTuple, TypedDict

import numpy as np

from pyrometer.quantity import Ratio, Seconds

CONFIDENCE = 0.95

MOST_STEPS = 20
"""On either side; more would make the overhead no surer, and its exact interval slow."""


class Overhead(NamedTuple):
    """Traced over untraced step, with an interval where there are enough steps for one."""

    ratio: Ratio
    low: Ratio | None
    high: Ratio | None


class StepCost(TypedDict):
    """The fields of `Capture` that tell what tracing did to a step."""

    step_untraced_s: Seconds | None
    step_traced_s: Seconds | None
    num_untraced: int
    overhead_ratio: Ratio | None
    overhead_low: Ratio | None
    overhead_high: Ratio | None
    confidence: float | None


def step_cost(untraced_s: list[Seconds], traced_s: list[Seconds]) -> StepCost:
    """Compare steps without and under the profiler: of many the last ones, on which all figures rest."""
    untraced_s, traced_s = untraced_s[-MOST_STEPS:], traced_s[-MOST_STEPS:]
    found = overhead(untraced_s, traced_s)
    return {
        "step_untraced_s": median(untraced_s) if untraced_s else None,
        "step_traced_s": median(traced_s) if traced_s else None,
        "num_untraced": len(untraced_s),
        "overhead_ratio": found and found.ratio,
        "overhead_low": found and found.low,
        "overhead_high": found and found.high,
        "confidence": CONFIDENCE if found and found.low is not None else None,
    }


def overhead(untraced_s: list[Seconds], traced_s: list[Seconds]) -> Overhead | None:
    """Ratio of the median steps, which are told beside it; `None` when one of the samples is empty.

    The interval is the one that belongs to the rank-sum test (Moses): between order statistics of the ratios of all pairs
    that are found from the exact distribution of Mann and Whitney's U. It asks only that the profiler multiplies step
    times, whatever their distribution, and is made wider where odd samples have the ratio of their medians beside it.

    >>> overhead([1.0, 1.1, 0.9, 1.0], [2.0, 2.1, 1.9, 2.0]).ratio
    2.0
    >>> overhead([1.0], [2.0])
    Overhead(ratio=2.0, low=None, high=None)
    """
    if not untraced_s or not traced_s:
        return None
    ratios = np.sort(np.divide.outer(np.asarray(traced_s), np.asarray(untraced_s)).ravel())
    rank = _rank(len(untraced_s), len(traced_s), (1 - CONFIDENCE) / 2)
    middle = median(traced_s) / median(untraced_s)
    if rank is None:
        return Overhead(middle, None, None)
    return Overhead(middle, min(middle, float(ratios[rank])), max(middle, float(ratios[-1 - rank])))


def _rank(m: int, n: int, tail: float) -> int | None:
    """The largest k with P(U ≤ k) ≤ tail; `None` when already U = 0 is likelier."""
    below, total, k = 0, math.comb(m + n, m), -1
    for u in range(m * n + 1):
        below += _count(m, n, u)
        if below > tail * total:
            break
        k = u
    return k if k >= 0 else None


@cache
def _count(m: int, n: int, u: int) -> int:
    """Orders of m and n values in which U equals u."""
    if u < 0 or m < 0 or n < 0:
        return 0
    if m == 0 or n == 0:
        return int(u == 0)
    return _count(m - 1, n, u - n) + _count(m, n - 1, u)
