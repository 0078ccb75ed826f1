"""Keeping the error probability when many comparisons are made at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values that control the probability of any false claim (Holm, 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    m = len(p_values)
    adjusted = np.maximum.accumulate([(m - rank) * p_values[i] for rank, i in enumerate(order)])
    return _unsorted(np.minimum(adjusted, 1.0), order)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values that control the expected share of false claims (Benjamini and Hochberg, 1995).

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    order = np.argsort(p_values)
    m = len(p_values)
    scaled = [p_values[i] * m / (rank + 1) for rank, i in enumerate(order)]
    adjusted = np.minimum.accumulate(scaled[::-1])[::-1]
    return _unsorted(np.minimum(adjusted, 1.0), order)


def _unsorted(values: np.ndarray, order: np.ndarray) -> list[float]:
    result = np.empty(len(values))
    result[order] = values
    return [float(round(value, 12)) for value in result]
