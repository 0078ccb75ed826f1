"""Where boxes stand in their row: the method of Brandes and Köpf (2001), which keeps long lines straight.

Vertices are aligned with a median neighbour in the row before, four times: downwards and upwards, leaning left and leaning
right. Each time aligned vertices form a block that is packed as one. The place of a vertex is the mean of the middle two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from pyrometer.compiler.graphs.grouping import topological_order
from pyrometer.compiler.graphs.ordering import Rows

_Edge = tuple[int, int]


def assign_centres(
    rows: Rows, widths: Sequence[float], gap: float, is_bend: Callable[[int], bool]
) -> list[float]:
    """The centre of every vertex, so that none of a row overlap.

    Args:
        rows: the vertices in their final order.
        widths: of each vertex.
        gap: between two vertices of a row.
        is_bend: whether a vertex is only a point on a long line.
    """
    crossed = _crossed_lines(rows, is_bend)
    found = []
    for upwards in (False, True):
        for mirrored in (False, True):
            ordered = [row[::-1] if mirrored else row for row in (rows.rows[::-1] if upwards else rows.rows)]
            roots = _aligned(ordered, rows.below if upwards else rows.above, crossed)
            places = _packed(ordered, roots, widths, gap)
            found.append([-place for place in places] if mirrored else places)
    return _balanced(found, widths)


def _crossed_lines(rows: Rows, is_bend: Callable[[int], bool]) -> set[_Edge]:
    """Lines that cross a piece between two bends; they give way, so that long lines stay straight."""
    crossed = set[_Edge]()
    for upper, lower in pairwise(rows.rows):
        position = {vertex: place for place, vertex in enumerate(upper)}
        left, start = 0, 0
        for place, vertex in enumerate(lower):
            inner = next((near for near in rows.above[vertex] if is_bend(vertex) and is_bend(near)), None)
            if inner is None and place < len(lower) - 1:
                continue
            right = len(upper) - 1 if inner is None else position[inner]
            for other in lower[start : place + 1]:
                crossed |= {
                    (near, other)
                    for near in rows.above[other]
                    if not left <= position[near] <= right and not (is_bend(near) and is_bend(other))
                }
            left, start = right, place + 1
    return crossed


def _aligned(
    ordered: Sequence[Sequence[int]], neighbours: Sequence[Sequence[int]], crossed: set[_Edge]
) -> list[int]:
    """The block of each vertex: that of a median neighbour, if no other line was aligned further to the right."""
    roots = list(range(len(neighbours)))
    for before, row in pairwise(ordered):
        position = {vertex: place for place, vertex in enumerate(before)}
        last = -1
        for vertex in row:
            near = sorted(neighbours[vertex], key=position.__getitem__)
            for other in dict.fromkeys((near[(len(near) - 1) // 2], near[len(near) // 2]) if near else ()):
                edge = (other, vertex) if (other, vertex) in crossed else (vertex, other)
                if roots[vertex] == vertex and last < position[other] and edge not in crossed:
                    roots[vertex] = roots[other]
                    last = position[other]
    return roots


def _packed(
    ordered: Sequence[Sequence[int]], roots: Sequence[int], widths: Sequence[float], gap: float
) -> list[float]:
    """Blocks as far to the left as those before them allow, then as near as possible to those behind them."""
    apart: dict[_Edge, float] = {}
    for row in ordered:
        for left, right in pairwise(row):
            pair = (roots[left], roots[right])
            apart[pair] = max(apart.get(pair, 0.0), (widths[left] + widths[right]) / 2 + gap)
    before: dict[int, list[tuple[int, float]]] = {}
    behind: dict[int, list[tuple[int, float]]] = {}
    for (left, right), distance in apart.items():
        before.setdefault(right, []).append((left, distance))
        behind.setdefault(left, []).append((right, distance))
    order = topological_order(len(roots), apart)
    places = [0.0] * len(roots)
    for block in order:
        places[block] = max(
            (places[left] + distance for left, distance in before.get(block, ())), default=0.0
        )
    for block in reversed(order):
        if block in behind:
            places[block] = max(
                places[block], min(places[right] - distance for right, distance in behind[block])
            )
    return [places[root] for root in roots]


def _balanced(found: Sequence[Sequence[float]], widths: Sequence[float]) -> list[float]:
    """The four side by side with the narrowest: leaning left to its left end, leaning right to its right end."""
    if not widths:
        return []

    def ends(places: Sequence[float]) -> tuple[float, float]:
        return (
            min(place - width / 2 for place, width in zip(places, widths, strict=True)),
            max(place + width / 2 for place, width in zip(places, widths, strict=True)),
        )

    spans = [ends(places) for places in found]
    narrow = min(spans, key=lambda span: span[1] - span[0])
    shifted = []
    for number, (places, span) in enumerate(zip(found, spans, strict=True)):
        side = number % 2
        shifted.append([place + narrow[side] - span[side] for place in places])
    return [sum(sorted(four)[1:3]) / 2 for four in zip(*shifted, strict=True)]
