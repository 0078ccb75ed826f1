"""Sorting samples into bins, for drawing."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from pyrometer.report.charts.scale import Scale


def bin_count(samples: Sequence[float], scale: Scale) -> int:
    """How many bins show the shape: the Freedman-Diaconis width on the axis as drawn, within limits.

    Never fewer than the square root of the number of samples (from 12 to 40), because that width hides two humps.

    >>> bin_count([float(i) for i in range(400)], Scale(0, 400))
    20
    """
    places = sorted(scale(sample) for sample in samples)
    n = len(places)
    width = 2 * (places[(3 * n) // 4] - places[n // 4]) / n ** (1 / 3)
    fewest = min(max(round(math.sqrt(n)), 12), 40)
    return 96 if width <= 0 else min(max(round(1 / width), fewest), 96)


def count_bins(samples: Sequence[float], edges: Sequence[float]) -> list[int]:
    """How many samples lie between each two edges; the last edge belongs to the last bin.

    >>> count_bins([0.1, 0.2, 0.9, 1.0], [0.0, 0.5, 1.0])
    [2, 2]
    """
    counts = [0] * (len(edges) - 1)
    for sample in samples:
        place = bisect_right(edges, sample) - 1
        counts[min(max(place, 0), len(counts) - 1)] += 1
    return counts
