"""Times of samples brought to figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyrometer.bench.distributions import student_tail
from pyrometer.loading.profiling.fetching import Fetched
from pyrometer.loading.profiling.record import Bound, SampleTimes, SlowSample, Trend
from pyrometer.quantity import Seconds

MIN_FOR_TREND = 20
NUM_SLOWEST = 5


def sample_times(fetched: Sequence[Fetched], *, by_index: bool) -> SampleTimes:
    """Quantiles, what they are bound by, the slowest, and how time changes with the index.

    Args:
        fetched: at least one sample.
        by_index: whether samples were asked for by index; else the first one counts as the start of the stream.

    >>> times = sample_times([Fetched(i, None, 0.01, 0.001) for i in range(5)], by_index=True)
    >>> times.bound, round(times.cpu_share, 3)
    ('io', 0.1)
    """
    start_s = None
    if not by_index and len(fetched) > 1:
        start_s, fetched = fetched[0].wall_s, fetched[1:]
    wall = np.array([fetch.wall_s for fetch in fetched])
    total = float(wall.sum())
    share = min(1.0, sum(fetch.cpu_s for fetch in fetched) / total) if total else 1.0
    slowest = sorted(fetched, key=lambda fetch: fetch.wall_s, reverse=True)[:NUM_SLOWEST]
    return SampleTimes(
        num_samples=len(fetched),
        mean_s=float(wall.mean()),
        median_s=float(np.median(wall)),
        p90_s=float(np.quantile(wall, 0.9)),
        p99_s=float(np.quantile(wall, 0.99)),
        max_s=float(wall.max()),
        cpu_share=share,
        bound=bound_by(share),
        start_s=start_s,
        slowest=[SlowSample(index=fetch.index, time_s=fetch.wall_s) for fetch in slowest],
        trend=trend_of([fetch.index for fetch in fetched], wall.tolist()) if by_index else None,
    )


def bound_by(cpu_share: float) -> Bound:
    """What a sample waits for: the CPU, or input and output, in which the CPU is free for others.

    >>> bound_by(0.97), bound_by(0.6), bound_by(0.1)
    ('cpu', 'mixed', 'io')
    """
    if cpu_share >= 0.8:
        return "cpu"
    return "mixed" if cpu_share >= 0.5 else "io"


def trend_of(indices: Sequence[int], times_s: Sequence[Seconds]) -> Trend | None:
    """How the time changes with the index; `None` for fewer than 20 samples, or where all are equal.

    >>> trend_of(range(40), [0.001 * (1 + i) for i in range(40)]).rank_correlation
    1.0
    """
    if len(indices) < MIN_FOR_TREND or len(set(indices)) < 2 or len(set(times_s)) < 2:
        return None
    order = np.argsort(indices)
    times = np.asarray(times_s)[order]
    fifth = len(times) // 5
    correlation, p_value = _rank_correlation(np.asarray(indices)[order], times)
    first = float(np.median(times[:fifth]))
    return Trend(
        rank_correlation=round(correlation, 6),
        p_value=p_value,
        last_over_first=float(np.median(times[-fifth:])) / first if first else 1.0,
    )


def _rank_correlation(first: NDArray[np.generic], second: NDArray[np.generic]) -> tuple[float, float]:
    """Spearman's, and the p of a two-sided test against none."""
    correlation = float(np.corrcoef(_ranks(first), _ranks(second))[0, 1])
    freedom, rest = len(first) - 2, 1 - correlation * correlation
    value = abs(correlation) * math.sqrt(freedom / rest) if rest > 0 else math.inf
    return correlation, student_tail(value, freedom) if math.isfinite(value) else 0.0


def _ranks(values: NDArray[np.generic]) -> NDArray[np.float64]:
    """The place of each in the order; of equal ones the mean of theirs."""
    _, place, number = np.unique(values, return_inverse=True, return_counts=True)
    mean: NDArray[np.float64] = (number.cumsum() - (number - 1) / 2)[place]
    return mean
