"""Which node of one call tree is which of the other: by name first, then by place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pyrometer.trace.difference.call_tree import CallTree

DIFFERENT, ALIKE, MISSING = 9.0, 0.5, 1.0
MAX_CELLS = 250_000


class Pair(NamedTuple):
    """A node that both trees have; what no pair has was added or removed below one."""

    a: int
    b: int
    added: list[int]
    removed: list[int]


def align_trees(a: CallTree, b: CallTree) -> list[Pair]:
    """Match the trees from the roots down; the first pair stands for the roots' common parent, as -1.

    Children are aligned as sequences (Wagner and Fischer 1974), where kernels may replace kernels and modules may be
    numbered differently; equal names that the order kept apart are matched afterwards.
    """
    pairs: list[Pair] = []
    open_pairs = [(-1, -1)]
    while open_pairs:
        node_a, node_b = open_pairs.pop()
        left, right = a.children.get(node_a, []), b.children.get(node_b, [])
        matched = align([_key(a, i) for i in left], [_key(b, i) for i in right])
        children = [(left[i], right[j]) for i, j in matched]
        taken_a, taken_b = {i for i, _ in matched}, {j for _, j in matched}
        pairs.append(
            Pair(
                node_a,
                node_b,
                added=[node for j, node in enumerate(right) if j not in taken_b],
                removed=[node for i, node in enumerate(left) if i not in taken_a],
            )
        )
        open_pairs.extend(reversed(children))
    return pairs


def align(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    """Places that match, in order of the left side.

    >>> align(["call:a", "call:b", "device:k1"], ["call:b", "call:c", "device:k2"])
    [(1, 0), (2, 2)]
    >>> align(["call:a", "call:b"], ["call:b", "call:a"])
    [(0, 1), (1, 0)]
    """
    if left == right:
        return [(i, i) for i in range(len(left))]
    found = _wagner_fischer(left, right) if len(left) * len(right) <= MAX_CELLS else []
    taken = {j for _, j in found}
    places = {name: j for j, name in enumerate(right) if j not in taken}
    begun = {i for i, _ in found}
    found += [(i, places.pop(name)) for i, name in enumerate(left) if i not in begun and name in places]
    return sorted(found)


def _wagner_fischer(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int]]:
    both = set(left) & set(right)
    cost = [[j * MISSING for j in range(len(right) + 1)]]
    for i, name in enumerate(left, 1):
        row, above = [i * MISSING], cost[-1]
        for j, other in enumerate(right, 1):
            row.append(
                min(above[j] + MISSING, row[j - 1] + MISSING, above[j - 1] + _substitution(name, other, both))
            )
        cost.append(row)
    i, j, found = len(left), len(right), []
    while i and j:
        if cost[i][j] == cost[i - 1][j - 1] + _substitution(left[i - 1], right[j - 1], both):
            i, j = i - 1, j - 1
            found.append((i, j))
        elif cost[i][j] == cost[i - 1][j] + MISSING:
            i -= 1
        else:
            j -= 1
    return found


def _substitution(name: str, other: str, both: set[str]) -> float:
    """Equal names match; a name that the other side has elsewhere must not be used up."""
    if name == other:
        return 0.0
    if name in both or other in both:
        return DIFFERENT
    return ALIKE if _family(name) == _family(other) else DIFFERENT


def _family(name: str) -> str:
    return "device:" if name.startswith("device:") else re.sub(r"_\d+$", "", name)


def _key(tree: CallTree, node: int) -> str:
    return f"{tree.kinds[node]}:{tree.names[node]}"
