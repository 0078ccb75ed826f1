"""The change of a time from one run to another, with an interval over steps."""

from __future__ import annotations

from functools import cache
from math import exp, log, sqrt
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from pyrometer.bench.distributions import binomial_cdf
from pyrometer.trace.difference.record import TimeChange

Times = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
MIN_STEPS = 3

RUN_MARGIN = 0.05
"""Two runs of one program differ by a few per cent by themselves (memory layout, clocks), which steps of one run do not
show; what is nearer to 1 than this is not called a difference."""

HOST_RUN_MARGIN = 0.15
"""The same where the host does the work: neighbours, clock rates and caches move whole runs by more than a device's."""

RECURRING_SHARE = 0.1
FEWEST_RECURRING = 2

SCATTERS = 2.5
"""How many times the scatter of its steps one program may differ from run to run."""

NORMAL_SHARE = 1.4826
"""Standard deviation over the median distance from the median, where steps are normal."""


def change(a: Times, b: Times) -> TimeChange:
    """Compare times per step, one value per step, ns.

    Medians, since one slow step says nothing of the others; what takes place in fewer than half of the steps on both sides
    counts by its mean, and so does what is slow again and again (`recurs`), as where loader workers deliver in bursts. The
    interval of the ratio of medians is that of Price and Bonett (2002), from order statistics on the logarithms; that of
    means comes from their standard errors. It assumes that steps vary independently and says nothing about other runs.

    >>> steady = change(np.array([100, 102, 98, 1000]), np.array([200, 204, 196, 200]))
    >>> round(steady.ratio, 2), steady.a_ns, steady.b_ns
    (1.98, 101.0, 200.0)
    >>> change(np.array([100]), np.array([200])).ci_low is None
    True
    """
    centres = tuple(float(np.median(times)) if len(times) else 0.0 for times in (a, b))
    by_mean = not any(centres) or recurs(a) or recurs(b)
    if by_mean:
        centres = tuple(float(times.mean()) if len(times) else 0.0 for times in (a, b))
    if not len(a) or not len(b) or a.min() <= 0 or b.min() <= 0:
        return TimeChange(a_ns=centres[0], b_ns=centres[1], ratio=None)
    shift = log(centres[1] / centres[0])
    if min(len(a), len(b)) < MIN_STEPS:
        return TimeChange(a_ns=centres[0], b_ns=centres[1], ratio=exp(shift))
    spread = sum(_mean_variance(times) if by_mean else _variance(np.log(times)) for times in (a, b))
    half = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * sqrt(spread)
    return TimeChange(
        a_ns=centres[0],
        b_ns=centres[1],
        ratio=exp(shift),
        ci_low=exp(shift - half),
        ci_high=exp(shift + half),
    )


def recurs(times: Times) -> bool:
    """Whether slow steps are a part of the program and no accident: a tenth of all, and more than two, take twice a quick one.

    >>> recurs(np.array([10, 1, 1, 1] * 5)), recurs(np.array([10, 10] + [1] * 30))
    (True, False)
    """
    slow = int((times > 2 * np.quantile(times, 0.25)).sum()) if len(times) else 0
    return slow > FEWEST_RECURRING and slow >= RECURRING_SHARE * len(times)


def _mean_variance(times: Times) -> float:
    """Of the logarithm of a mean."""
    return float(times.var(ddof=1)) / len(times) / float(times.mean()) ** 2


def _variance(logs: Floats) -> float:
    """Of the median of a few values: from how far two order statistics lie apart that hold it with a known probability."""
    rank, deviations = _bracket(len(logs))
    low, high = np.sort(logs)[[rank - 1, len(logs) - rank]]
    return float((high - low) / deviations) ** 2


@cache
def _bracket(n: int) -> tuple[int, float]:
    """The rank from either end, and how many standard deviations of the median lie between the two."""
    rank = max(round((n + 1) / 2 - sqrt(n)), 1)
    return rank, 2 * NormalDist().inv_cdf(1 - binomial_cdf(rank - 1, n, 0.5))


def run_margin(a: Times, b: Times, *, least: float = RUN_MARGIN) -> float:
    """By how much two runs of one program may differ by themselves: `least`, or a multiple of the scatter of their steps.

    Where steps scatter, what disturbs them (neighbours, a hot device) also comes and goes between runs, and the interval
    over steps does not cover that. One program has one scatter: the median distance of the steps of both sides from the
    median of their own, each side as heavy as the other, so that a few slow steps do not count. Steps that are slow again
    and again are no scatter: there the interval of the means is what holds it.

    >>> run_margin(np.array([100, 101, 99]), np.array([100, 101, 99]))
    0.05
    >>> round(run_margin(np.array([100, 110, 90, 105]), np.array([80, 100, 125, 100])), 2)
    0.28
    """
    logs = [np.log(times) for times in (a, b) if len(times) > 1 and times.min() > 0 and not recurs(times)]
    if not logs:
        return least
    shares = np.linspace(0, 1, 101)
    distances = np.median([np.quantile(np.abs(side - np.median(side)), shares) for side in logs])
    known = sum(map(len, logs))
    scatter = NORMAL_SHARE * float(distances) * sqrt(known / (known - len(logs)))
    return max(least, float(np.expm1(SCATTERS * scatter)))
