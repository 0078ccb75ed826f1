"""Walking up the call tree for all events at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def nearest(parent: IntArray, depth: IntArray, wanted: Mask) -> IntArray:
    """For each event the innermost wanted one at or above it, as a row; -1 where there is none.

    Level by level, from the roots down; `parent` is -1 at the roots, and `depth` counts ancestors.

    >>> nearest(np.array([-1, 0, 1]), np.array([0, 1, 2]), np.array([True, False, False])).tolist()
    [0, 0, 0]
    """
    found = np.full(len(parent), -1, np.int64)
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(depth.max(initial=-1) + 2))
    for low, high in zip(bounds[:-1], bounds[1:], strict=True):
        rows = order[low:high]
        above = parent[rows]
        found[rows] = np.where(wanted[rows], rows, np.where(above >= 0, found[above], -1))
    return found
