"""Statistics of paired blocks: one number per block, ln(candidate/baseline), and what they say together.

Blocks are ABBA or BAAB by a coin. If both sides are the same program, flipping the labels changes nothing, so the
sign of every block is a fair coin whatever the autocorrelation of the machine: tests on the signs and signed ranks
are valid by design, not by an assumption about the noise.
"""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

import numpy as np

from pyrometer.bench.autocorrelation import Floats, lag_one
from pyrometer.bench.quantiles import normal_quantile

TRIMMED = 0.2
"""Of the blocks of one process at each end, where its estimate is their mean."""

REACH = 1.4 * (normal_quantile(1 - 0.01 / 2) + normal_quantile(0.95))
"""Standard errors that an effect must have to be decided at 1 % with a power of 95 %; 1.4 is what heavy tails and several looks cost."""

MOST_EXACT = 25
"""Blocks up to which the distribution of their signed ranks is counted out."""


def hodges_lehmann(blocks: Floats, alpha: float) -> tuple[float, float, float]:
    """Hodges-Lehmann estimate of the centre, with the Wilcoxon signed-rank interval.

    The estimate is the median of the Walsh averages (Hodges and Lehmann, 1963); the bounds are those averages whose
    ranks the signed-rank distribution gives: exactly for a few blocks, by its normal approximation for many.

    Args:
        blocks: log ratios, one per block.
        alpha: one minus the coverage, two-sided.

    Returns:
        Estimate, lower and upper bound; the bounds are infinite for too few blocks.

    >>> estimate, low, high = hodges_lehmann(np.linspace(0.9, 1.1, 41), 0.01)
    >>> round(estimate, 6), low < 1 < high
    (1.0, True)
    """
    n = len(blocks)
    first, second = np.triu_indices(n)
    walsh = np.sort((blocks[first] + blocks[second]) / 2)
    total = len(walsh)
    rank = _lower_rank(n, alpha / 2)
    estimate = float(np.median(walsh))
    if rank < 1:
        return estimate, -math.inf, math.inf
    return estimate, float(walsh[rank - 1]), float(walsh[total - rank])


@cache
def _lower_rank(n: int, tail: float) -> int:
    """The largest rank below which the signed-rank statistic of `n` blocks falls by chance with at most this probability."""
    total = n * (n + 1) // 2
    if n > MOST_EXACT:
        spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return math.floor(total / 2 - normal_quantile(1 - tail) * spread)
    ways = np.zeros(total + 1)
    ways[0] = 1
    for rank in range(1, n + 1):
        ways[rank:] += ways[:-rank].copy()
    return int(np.searchsorted(np.cumsum(ways) / 2**n, tail, side="right"))


def signed_rank_p(blocks: Floats) -> float:
    """Two-sided p of the Wilcoxon signed-rank test against a centre of zero."""
    if not np.any(blocks):
        return 1.0
    from scipy import stats  # slow to import

    return float(stats.wilcoxon(blocks).pvalue)


def trimmed_mean(blocks: Floats) -> float:
    """The mean of blocks without the outer fifths.

    >>> trimmed_mean(np.array([9.0, 1.0, 2.0, 3.0, -9.0]))
    2.0
    """
    cut = int(TRIMMED * len(blocks))
    return float(np.sort(blocks)[cut : len(blocks) - cut].mean())


def robust_sd(blocks: Floats) -> float:
    """Standard deviation by the median absolute deviation, so that a few bad blocks do not count.

    >>> robust_sd(np.array([0.0, 1.0, -1.0, 1e9]))
    1.4826
    """
    return float(1.4826 * np.median(np.abs(blocks - np.median(blocks))))


def blocks_needed(blocks: Floats, effect: float) -> int:
    """Blocks after which an effect of this size (in ln ratio) would be decided: normal theory, with the robust spread."""
    return math.ceil((REACH * robust_sd(blocks) / effect) ** 2)


def resolution(blocks: Floats, num_blocks: float) -> float:
    """Smallest difference, as a share, that so many blocks would decide; the inverse of `blocks_needed`.

    >>> blocks = np.random.default_rng(0).normal(0, 0.05, 100)
    >>> 0.02 < resolution(blocks, 100) < 0.04
    True
    """
    return math.expm1(REACH * robust_sd(blocks) / math.sqrt(max(num_blocks, 1.0)))


def merged(blocks: Floats) -> Floats:
    """The blocks, or means of neighbouring pairs while neighbours are clearly correlated.

    >>> len(merged(np.sin(np.arange(160) / 20))) < 160
    True
    """
    while len(blocks) >= 40 and abs(lag_one(blocks)) > max(0.2, 2.58 / math.sqrt(len(blocks))):
        even = blocks[: len(blocks) // 2 * 2]
        blocks = even.reshape(-1, 2).mean(axis=1)
    return blocks


def drifts(blocks: Floats, tolerance: float) -> bool:
    """Whether the effect itself changed from the first to the last third: Mann-Whitney p < 0.01 and over `tolerance`."""
    third = len(blocks) // 3
    if third < 6:
        return False
    first, last = blocks[:third], blocks[-third:]
    return abs(float(np.median(last) - np.median(first))) > tolerance and rank_sum_p(first, last) < 0.01


def rank_sum_p(first: Floats, last: Floats) -> float:
    """Two-sided p of the test of Mann and Whitney, by its normal approximation with ties and continuity.

    >>> round(rank_sum_p(np.arange(10.0), np.arange(5.0, 15.0)), 4), rank_sum_p(np.ones(6), np.ones(6))
    (0.0051, 1.0)
    """
    n, m = len(first), len(last)
    _, places, counts = np.unique(np.concatenate([first, last]), return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    off = abs(float(ranks[places[:n]].sum()) - n * (n + m + 1) / 2) - 0.5
    ties = float((counts**3 - counts).sum())
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    return 2 * NormalDist().cdf(-off / math.sqrt(variance)) if variance > 0 and off > 0 else 1.0
