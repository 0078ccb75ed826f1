"""Walking up the call tree for all events at once."""

from __future__ import annotations

import numpy as np

from pyrometer.native import compiled
from pyrometer.trace.linking.tree import depth_of
from pyrometer.trace.rows import IntArray, Mask


def by_level(depth: IntArray) -> list[IntArray]:
    """The rows of each depth, from 0 on.

    >>> [rows.tolist() for rows in by_level(np.array([0, 1, 0]))]
    [[0, 2], [1]]
    """
    deepest = int(depth.max(initial=-1))
    small = depth.astype(np.uint16) if deepest < 2**16 else depth  # numpy sorts these several times faster
    order = np.argsort(small, kind="stable")
    return np.split(order, np.cumsum(np.bincount(depth, minlength=deepest + 1))[:-1]) if len(depth) else []


def nearest(parent: IntArray, wanted: Mask) -> IntArray:
    """For each event the innermost wanted one at or above it, as a row; -1 where there is none.

    `parent` is -1 at the roots.

    >>> nearest(np.array([-1, 0, 1]), np.array([True, False, False])).tolist()
    [0, 0, 0]
    """
    found = np.full(len(parent), -1, np.int64)
    if not wanted.any():
        return found
    fast = compiled()
    if fast is not None:
        fast.nearest(np.ascontiguousarray(parent, np.int64), found, np.ascontiguousarray(wanted, bool))
        return found
    for rows in by_level(depth_of(parent)):
        above = parent[rows]
        found[rows] = np.where(wanted[rows], rows, np.where(above >= 0, found[above], -1))
    return found
