"""Putting nodes in an order in which every node comes after all that it waits for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyrometer.native import compiled
from pyrometer.trace.rows import IntArray


class Pairs(NamedTuple):
    """Nodes in topological order with one or two edges each; see `Graph`."""

    node: IntArray  # the given node that each one is, or stands before
    is_pass: npt.NDArray[np.bool_]
    source: IntArray  # (2, nodes)
    edge: IntArray  # (2, nodes): which given edge; -1 from a pass


def topological(time: IntArray, source: IntArray, target: IntArray) -> IntArray:
    """The position of each node: by time, and at one moment behind what it waits for.

    Edges must not lead back in time, and those within one moment must not form a ring.
    """
    level = time[source] == time[target]
    depth = _depths(len(time), source[level], target[level])
    position = np.empty(len(time), np.int64)
    position[np.lexsort((depth, time))] = np.arange(len(time))
    return position


def _depths(number: int, source: IntArray, target: IntArray) -> IntArray:
    """For each node how many edges lead to it one after the other, at most. Linear: a trace cut in two has long chains at the cut."""
    depth = np.zeros(number, np.int64)
    fast = compiled()
    if fast is not None:
        fast.depths(np.ascontiguousarray(source), np.ascontiguousarray(target), depth)
        return depth
    order = np.argsort(source, kind="stable")
    first = np.searchsorted(source[order], np.arange(number + 1)).tolist()
    behind, found = target[order].tolist(), depth.tolist()
    missing = np.bincount(target, minlength=number)
    ready = np.flatnonzero((missing == 0) & (np.bincount(source, minlength=number) > 0)).tolist()
    missing = missing.tolist()
    for node in ready:  # grows on the way
        for after in behind[first[node] : first[node + 1]]:
            found[after] = max(found[after], found[node] + 1)
            missing[after] -= 1
            if not missing[after]:
                ready.append(after)
    return np.array(found, np.int64)


def pair(position: IntArray, source: IntArray, target: IntArray) -> Pairs:
    """Give every node but the first at most two edges, with passes for the surplus.

    Every node but the one at position 0 must be the target of an edge.
    """
    order = np.argsort(position[target], kind="stable")
    nodes = np.argsort(position)
    count = np.bincount(position[target], minlength=len(position))
    last = np.arange(len(position)) + np.cumsum(
        np.maximum(count - 2, 0)
    )  # new place of each node, by position
    total = int(last[-1]) + 1
    place = last[position]
    owner = np.searchsorted(last, np.arange(total))
    at = position[target[order]]
    index = np.arange(len(order)) - np.repeat(np.cumsum(count) - count, count)
    node = last[at] - np.maximum(count[at] - 2, 0) + np.maximum(index - 1, 0)
    slot = (index > 0).astype(np.int64)
    is_pass = np.ones(total, bool)
    is_pass[last] = False
    found = np.zeros((2, total), np.int64)
    edge = np.full((2, total), -1, np.int64)
    found[0] = np.arange(total) - 1
    found[slot, node] = place[source[order]]
    edge[slot, node] = order
    alone = last[count == 1]
    found[1, alone], edge[1, alone] = found[0, alone], edge[0, alone]
    found[:, 0] = 0
    return Pairs(nodes[owner], is_pass, found, edge)
