"""Series of figures: their slope, and fewer of them for showing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, NamedTuple


class Slope(NamedTuple):
    """Growth per unit, with the bounds of its interval."""

    at: float
    low: float
    high: float


def theil_sen(x: Any, y: Any, confidence: float = 0.95, *, noise_time: float = 1.0) -> Slope:
    """The median of all pairwise slopes (Theil and Sen), with Sen's interval (1968).

    The bounds are pairwise slopes at ranks that the normal approximation of Kendall's S gives.

    Args:
        x: rising; where two are equal, their slope does not count.
        y: as many values.
        confidence: coverage of the interval.
        noise_time: autocorrelation time of the noise, by which the variance of S is multiplied.

    Returns:
        The slope is NaN without two values, the bounds infinite for too few or too alike ones.

    >>> theil_sen(range(10), [3.0 * i + (100 if i == 4 else 0) for i in range(10)]).at
    3.0
    """
    import numpy as np

    times, values = np.asarray(x, np.float64), np.asarray(y, np.float64)
    n = len(times)
    first, second = np.triu_indices(n, 1)
    run = times[second] - times[first]
    usable = run > 0
    slopes = np.sort((values[second] - values[first])[usable] / run[usable])
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(
        noise_time * n * (n - 1) * (2 * n + 5) / 18
    )
    low, high = math.floor((len(slopes) - reach) / 2), math.ceil((len(slopes) + reach) / 2)
    return Slope(
        float(np.median(slopes)) if len(slopes) else math.nan,
        float(slopes[low - 1]) if low >= 1 else -math.inf,
        float(slopes[high]) if high < len(slopes) else math.inf,
    )


def thinned(length: int, most: int) -> list[int]:
    """Indices of at most so many entries of a series, evenly over it; the first and the last are among them.

    >>> thinned(10, 4), thinned(2, 4), thinned(5, 1)
    ([0, 3, 6, 9], [0, 1], [0])
    """
    if length <= most:
        return list(range(length))
    return [index * (length - 1) // max(most - 1, 1) for index in range(most)]


def extremes(values: Sequence[float], most: int) -> list[int]:
    """Indices that show a long series: of each of `most / 2` equal stretches its least and its largest value, in order.

    Outliers survive, which thinning would drop.

    >>> extremes([0.0, 9.0, 1.0, 2.0, 3.0, -7.0, 4.0, 5.0], most=4)
    [0, 1, 5, 7]
    """
    if len(values) <= most:
        return list(range(len(values)))
    import numpy as np

    series = np.asarray(values, dtype=np.float64)
    stretches = np.array_split(np.arange(len(series)), max(most // 2, 1))
    ends = {int(part[place(series[part])]) for part in stretches for place in (np.argmin, np.argmax)}
    return sorted(ends)
