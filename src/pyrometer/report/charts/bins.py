"""Sorting samples into bins, for drawing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from pyrometer.report.charts.scale import Scale


def bin_count(samples: Sequence[float], scale: Scale) -> int:
    """How many bins show the shape: the Freedman-Diaconis width on the axis as drawn, kept between 12 and 72.

    >>> bin_count([float(i) for i in range(1000)], Scale(0, 1000))
    12
    """
    places = sorted(scale(sample) for sample in samples)
    n = len(places)
    width = 2 * (places[(3 * n) // 4] - places[n // 4]) / n ** (1 / 3)
    return 72 if width <= 0 else min(max(round(1 / width), 12), 72)


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
