"""Where a series changes. Pure: links in, change points out; a change point names a neighbourhood until it is proved.

PELT (Killick, Fearnhead and Eckley, 2012) divides the links, each over its standard error, into stretches of one mean. A
jump is a stretch of one link, a creeping change one of many. It is not asked for shifts of the chained ratio itself: that is a
sum of independent errors, which wanders, and shifts would be found where nothing happened.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pyrometer.bench.quantiles import normal_quantile
from pyrometer.guard.history.record import ChangePoint, Point, Series
from pyrometer.guard.history.series import CONFIDENCE

LEAST_Z = 4.0
"""A stretch counts from so many standard errors on."""

LEAST_EFFECT = 0.02
"""And from such a change on, as a share."""


def find_changes(series: Series) -> list[ChangePoint]:
    """The change points of a series, the oldest first."""
    if series.is_exact:
        return [
            _change(series, series.points[place : place + 1], 0.0)
            for place, point in enumerate(series.points)
            if point.log_ratio != 0
        ]
    scores = np.array([point.log_ratio / point.stderr for point in series.points if point.stderr > 0])
    if len(scores) < len(series.points):
        return []  # counted in some jobs and timed in others: no one series
    inflation = spread_of(scores)
    found = []
    for begin, end in stretches(scores / inflation, LEAST_Z):
        own = series.points[begin:end]
        change = _change(series, own, inflation)
        if abs(math.log(change.ratio)) >= math.log1p(LEAST_EFFECT):
            found.append(change)
    return found


def spread_of(scores: npt.NDArray[np.float64]) -> float:
    """By how much links of unchanged code scatter beyond their standard errors; at least 1.

    Most links change nothing, so that the median tells; few links tell nothing.

    >>> spread_of(np.array([1.0, -1.0]))
    1.0
    """
    if len(scores) < 8:
        return 1.0
    return max(1.0, float(1.4826 * np.median(np.abs(scores - np.median(scores)))))


def stretches(scores: npt.NDArray[np.float64], least_z: float) -> list[tuple[int, int]]:
    """Where the mean of standardised links is not zero, as begins and ends.

    >>> stretches(np.array([0.1, -0.3, 9.0, 0.2, -0.4]), 4.0)
    [(2, 3)]
    """
    ends = _pelt(scores, least_z**2 / 2)
    pairs = zip([0, *ends], ends, strict=False)
    return [
        (begin, end)
        for begin, end in pairs
        if abs(np.sum(scores[begin:end])) >= least_z * math.sqrt(end - begin)
    ]


def _pelt(scores: npt.NDArray[np.float64], penalty: float) -> list[int]:
    if len(scores) < 2:
        return [len(scores)]
    import ruptures

    # With this kernel the cost is that of a shifting mean, and the search is the one in C.
    search = ruptures.KernelCPD(kernel="linear", min_size=1).fit(scores.reshape(-1, 1))
    return [int(end) for end in search.predict(pen=penalty)]


def _change(series: Series, own: Sequence[Point], inflation: float) -> ChangePoint:
    total = math.fsum(point.log_ratio for point in own)
    error = inflation * math.sqrt(math.fsum(point.stderr**2 for point in own))
    half = normal_quantile((1 + CONFIDENCE) / 2) * error
    return ChangePoint(
        benchmark=series.benchmark,
        metric=series.metric,
        is_worse=(total > 0) != series.more_is_better,
        base_sha=own[0].base_sha,
        head_sha=own[-1].head_sha,
        num_links=len(own),
        ratio=math.exp(total),
        ci_low=math.exp(total - half),
        ci_high=math.exp(total + half),
        is_exact=series.is_exact,
    )
