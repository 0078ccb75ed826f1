"""The change of a time from one run to another, with an interval over steps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyrometer.bench.distributions import student_quantile
from pyrometer.trace.difference.record import TimeChange

Times = npt.NDArray[np.int64]

CONFIDENCE = 0.95
MIN_STEPS = 3

RUN_MARGIN = 0.05
"""Two runs of one program differ by a few per cent by themselves (memory layout, clocks), which steps of one run do not
show; what is nearer to 1 than this is not called a difference."""

HOST_RUN_MARGIN = 0.15
"""The same where the host does the work: neighbours, clock rates and caches move whole runs by more than a device's."""


def change(a: Times, b: Times) -> TimeChange:
    """Compare times per step, one value per step, ns.

    The ratio is of geometric means; its interval is Welch's (unequal variances) on the logarithms, the usual one for
    ratios of positive times. It assumes that steps vary independently and says nothing about other runs.

    >>> steady = change(np.array([100, 102, 98]), np.array([200, 204, 196]))
    >>> round(steady.ratio, 3), steady.ci_low < 2 < steady.ci_high
    (2.0, True)
    >>> change(np.array([100]), np.array([200])).ci_low is None
    True
    """
    means = float(a.mean()) if len(a) else 0.0, float(b.mean()) if len(b) else 0.0
    if not len(a) or not len(b) or a.min() <= 0 or b.min() <= 0:
        return TimeChange(a_ns=means[0], b_ns=means[1], ratio=None)
    log_a, log_b = np.log(a), np.log(b)
    shift = float(log_b.mean() - log_a.mean())
    if min(len(a), len(b)) < MIN_STEPS:
        return TimeChange(a_ns=means[0], b_ns=means[1], ratio=float(np.exp(shift)))
    of_a, of_b = log_a.var(ddof=1) / len(a), log_b.var(ddof=1) / len(b)
    half = 0.0
    if of_a + of_b > 0:
        freedom = (of_a + of_b) ** 2 / (of_a**2 / (len(a) - 1) + of_b**2 / (len(b) - 1))
        half = float(student_quantile((1 + CONFIDENCE) / 2, float(freedom)) * np.sqrt(of_a + of_b))
    low, high = np.exp(shift - half), np.exp(shift + half)
    return TimeChange(
        a_ns=means[0], b_ns=means[1], ratio=float(np.exp(shift)), ci_low=float(low), ci_high=float(high)
    )


def run_margin(a: Times, b: Times, *, least: float = RUN_MARGIN) -> float:
    """By how much two runs of one program may differ by themselves: `least`, or twice the scatter of their steps.

    Where steps scatter, what disturbs them (neighbours, a hot device) also comes and goes between runs, and the interval
    over steps does not cover that.

    >>> run_margin(np.array([100, 101, 99]), np.array([100, 101, 99]))
    0.05
    >>> round(run_margin(np.array([100, 101, 99]), np.array([80, 100, 125])), 2)
    0.56
    """
    known = [times for times in (a, b) if len(times) > 1 and times.min() > 0]
    scatter = max((float(np.log(times).std(ddof=1)) for times in known), default=0.0)
    return max(least, float(np.expm1(2 * scatter)))
