"""Keeping the error probability when many comparisons are made at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values that control the probability of any false claim (Holm, 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    scaled = [(len(p_values) - rank) * p_values[i] for rank, i in enumerate(order)]
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(p) for p in adjusted]


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values that control the expected share of false claims (Benjamini and Hochberg, 1995).

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    return [float(p) for p in stats.false_discovery_control(p_values)] if p_values else []
