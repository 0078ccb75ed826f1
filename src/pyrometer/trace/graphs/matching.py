"""Which launching call of a capture stands behind each piece of work that a launch of the graph ran.

By name, and by grid and block where both sides have them: where a name occurs as often here as there, its first
occurrence is the first one there, and so on, also where several streams ran the graph's branches at once; else what the
two sequences have in common, in order. Captures without names (CUDA) are matched by order alone, and only if each
piece is of the kind that the call launches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher

from pyrometer.trace.graphs.captures import Node

ENOUGH = 0.5
"""Share of a launch's work that must be found in a capture; below, it is that of another graph."""


def match(captured: Sequence[Node], ran: Sequence[Node]) -> list[int]:
    """For each piece of work the position of its call in the capture; -1 where there is none.

    >>> match([Node("kernel", "a"), Node("kernel", "b")], [Node("kernel", "b"), Node("kernel", "a")])
    [1, 0]
    >>> match([Node("kernel"), Node("memset")], [Node("kernel", "a"), Node("memset")])
    [0, 1]
    >>> match([Node("kernel"), Node("memset")], [Node("kernel", "a"), Node("kernel", "b")])
    [-1, -1]
    """
    if not any(node.name for node in captured):
        same = [node.kind for node in captured] == [node.kind for node in ran]
        return list(range(len(ran))) if same else [-1] * len(ran)
    both = all(node.grid and node.block for nodes in (captured, ran) for node in nodes if node.name)
    here, there = (
        [node if both else Node(node.kind, node.name) for node in nodes] for nodes in (ran, captured)
    )
    found = _by_count(there, here)
    if -1 in found:
        common = SequenceMatcher(None, there, here, autojunk=False).get_matching_blocks()
        in_order = [-1] * len(here)
        for at_there, at_here, length in common:
            in_order[at_here : at_here + length] = range(at_there, at_there + length)
        found = max(found, in_order, key=lambda places: len(places) - places.count(-1))
    return found if len(found) - found.count(-1) >= ENOUGH * len(found) else [-1] * len(found)


def _by_count(there: Sequence[Node], here: Sequence[Node]) -> list[int]:
    places: dict[Node, list[int]] = defaultdict(list)
    for i, node in enumerate(there):
        places[node].append(i)
    wanted: dict[Node, int] = defaultdict(int)
    for node in here:
        wanted[node] += 1
    turn: dict[Node, int] = defaultdict(int)
    found = []
    for node in here:
        equal = wanted[node] == len(places.get(node, ()))
        found.append(places[node][turn[node]] if equal else -1)
        turn[node] += 1
    return found
