"""Statistics of paired blocks: one number per block, ln(candidate/baseline), and what they say together.

Blocks are ABBA or BAAB by a coin. If both sides are the same program, flipping the labels changes nothing, so the
sign of every block is a fair coin whatever the autocorrelation of the machine: tests on the signs and signed ranks
are valid by design, not by an assumption about the noise.
"""

from __future__ import annotations

import math

import numpy as np

from pyrometer.bench.autocorrelation import Floats, lag_one
from pyrometer.bench.quantiles import normal_quantile

TRIMMED = 0.2
"""Of the blocks of one process at each end, where its estimate is their mean."""

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


def blocks_needed(blocks: Floats, effect: float, alpha: float = 0.01, power: float = 0.95) -> int:
    """Blocks after which an effect of this size (in ln ratio) would be decided.

    Normal theory for the centre with the robust spread; the factor 1.4 is what heavy tails and several looks cost on
    shared machines.
    """
    return math.ceil((_reach(alpha, power) * robust_sd(blocks) / effect) ** 2)


def resolution(blocks: Floats, num_blocks: float, alpha: float = 0.01, power: float = 0.95) -> float:
    """Smallest difference, as a share, that so many blocks would decide; the inverse of `blocks_needed`.

    >>> blocks = np.random.default_rng(0).normal(0, 0.05, 100)
    >>> 0.02 < resolution(blocks, 100) < 0.04
    True
    """
    return math.expm1(_reach(alpha, power) * robust_sd(blocks) / math.sqrt(max(num_blocks, 1.0)))


def _reach(alpha: float, power: float) -> float:
    return 1.4 * (normal_quantile(1 - alpha / 2) + normal_quantile(power))


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
    from scipy import stats  # slow to import

    shift = float(np.median(last) - np.median(first))
    return abs(shift) > tolerance and float(stats.mannwhitneyu(first, last).pvalue) < 0.01
