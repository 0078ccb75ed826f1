"""Merging by path: events with the same labels above them are one node of a tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pyrometer.trace.linking.nearest import by_level
from pyrometer.trace.linking.tree import depth_of
from pyrometer.trace.rows import IntArray


class Paths(NamedTuple):
    """Nodes, the ones above before the ones below; numbers begin where they were told to."""

    of_event: IntArray  # the node of each event; -1 for events that were not merged
    parent: IntArray  # of each node; -1 at the roots
    label: IntArray  # of each node


def merge_paths(rows: IntArray, label: IntArray, above: IntArray, top: IntArray, *, first: int = 0) -> Paths:
    """Merge events by path, level by level.

    >>> merge_paths(*map(np.array, ([0, 1, 2, 3], [5, 6, 5, 6], [-1, 0, -1, 2], [-1] * 4))).of_event.tolist()
    [0, 1, 0, 1]

    Args:
        rows: the events to merge.
        label: of each event, small whole numbers; equal ones under the same node become one node.
        above: the event above each event, one of `rows`; -1 where there is none.
        top: the node above each event that has no event above it; -1 for none.
        first: number of the first node that is made.
    """
    of_event = np.full(len(above), -1, np.int64)
    width = int(label.max(initial=0)) + 1
    keys = [np.empty(0, np.int64)]
    count = first
    for chosen in by_level(depth_of(above)[rows]):
        mine = rows[chosen]
        held = np.where(above[mine] >= 0, of_event[above[mine]], top[mine])
        key, which = np.unique((held + 1) * width + label[mine], return_inverse=True)
        of_event[mine] = count + which
        keys.append(key)
        count += len(key)
    key = np.concatenate(keys)
    return Paths(of_event, key // width - 1, key % width)
