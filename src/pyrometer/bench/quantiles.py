"""Quantiles of step times, each with an interval that respects autocorrelation."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from statistics import NormalDist

import numpy as np

from pyrometer.bench.autocorrelation import Floats, autocorrelation_time
from pyrometer.bench.distributions import binomial_cdf, student_quantile
from pyrometer.bench.measurement import QuantileEstimate

QUANTILES = (0.5, 0.9, 0.95, 0.99)


def estimate_quantile(series: Floats, quantile: float, confidence: float) -> QuantileEstimate:
    """A quantile and its distribution-free interval.

    The interval runs between two order statistics. For independent samples their ranks are quantiles of a binomial
    distribution; dependent samples count as `n / tau`, where `tau` is the autocorrelation time of the indicator
    "below the quantile" (the series whose mean the quantile inverts), not of the values. A bound that these samples
    cannot give is `None`.

    Args:
        series: samples in time order, seconds.
        quantile: between 0 and 1.
        confidence: coverage of the two-sided interval.
    """
    ordered = np.sort(series)
    n = len(series)
    low, high = _binomial_ranks(n / _indicator_time(series, quantile), quantile, confidence)
    low_rank, high_rank = math.floor(low * n), high * n
    return QuantileEstimate(
        quantile=quantile,
        value_s=float(np.quantile(ordered, quantile)),
        low_s=float(ordered[low_rank - 1]) if low_rank >= 1 else None,
        high_s=float(ordered[math.ceil(high_rank) - 1]) if high_rank <= n else None,
    )


def _indicator_time(series: Floats, quantile: float) -> float:
    """Autocorrelation time of "below the quantile".

    Far in the tail too few samples lie above to see their clustering, so that the time at the innermost well-filled
    quantile (P90) serves as a floor.
    """
    levels = {quantile, min(quantile, 0.9)}
    return max(autocorrelation_time((series <= np.quantile(series, q)).astype(np.float64)) for q in levels)


def _binomial_ranks(effective: float, quantile: float, confidence: float) -> tuple[float, float]:
    """Lower and upper rank as shares of n; outside (0, 1] when the samples cannot bound that side.

    Inverts the Clopper-Pearson tail of a Binomial(effective, quantile).
    """
    tail = (1 - confidence) / 2
    counts = range(math.ceil(effective) + 1)

    def cumulative(count: int) -> float:
        return binomial_cdf(count, effective, quantile)

    below = bisect_right(counts, tail, key=cumulative)
    above = bisect_left(counts, 1 - tail, key=cumulative)
    return below / effective, (above + 1) / effective if above < len(counts) else math.inf


def mean_interval(series: Floats, confidence: float) -> tuple[float, float]:
    """Interval of the mean: normal with the effective sample size.

    >>> low, high = mean_interval(np.array([1.0, 2.0, 3.0, 2.0] * 25), 0.95)
    >>> low < 2.0 < high
    True
    """
    n = len(series)
    mean = float(series.mean())
    if n < 2:
        return mean, mean
    effective = max(n / autocorrelation_time(series), 2.0)
    scale = student_quantile((1 + confidence) / 2, effective - 1)
    half = scale * float(series.std(ddof=1)) / math.sqrt(effective)
    return mean - half, mean + half


def normal_quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)
