"""The order of boxes within each row, so that few lines cross: medians, sweep by sweep, then exchanges of neighbours."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

_SWEEPS = 12
_PATIENCE = 4
"""Sweeps without a gain after which it ends."""
_EXCHANGED = 4_000
"""Larger drawings go without the exchange of neighbours."""


class Rows(NamedTuple):
    """Vertices row by row; edges join neighbouring rows only."""

    rows: list[list[int]]
    above: list[list[int]]
    below: list[list[int]]


def order_rows(rows: Rows) -> list[list[int]]:
    """The vertices of each row from left to right; the best order that was met."""
    current = [list(row) for row in rows.rows]
    best, fewest = current, _crossings(rows, current)
    idle = 0
    for sweep in range(_SWEEPS):
        if not fewest or idle == _PATIENCE:
            break
        current = _sweep(rows, current, down=sweep % 2 == 0)
        if len(rows.above) <= _EXCHANGED:
            _exchange(rows, current)
        crossings = _crossings(rows, current)
        if crossings < fewest:
            best, fewest, idle = [list(row) for row in current], crossings, 0
        else:
            idle += 1
    return best


def _sweep(rows: Rows, current: Sequence[list[int]], *, down: bool) -> list[list[int]]:
    """Sort each row by the medians of its neighbours in the row before it."""
    neighbours = rows.above if down else rows.below
    sweep = [list(row) for row in current]
    places = range(1, len(sweep)) if down else range(len(sweep) - 2, -1, -1)
    for place in places:
        before = sweep[place - 1 if down else place + 1]
        position = {vertex: index for index, vertex in enumerate(before)}
        sweep[place] = _sorted_by_median(sweep[place], neighbours, position)
    return sweep


def _sorted_by_median(
    row: Sequence[int], neighbours: Sequence[Sequence[int]], position: dict[int, int]
) -> list[int]:
    """Vertices without neighbours keep their place, the others are sorted around them."""
    medians = {vertex: _median(sorted(position[near] for near in neighbours[vertex])) for vertex in row}
    free = iter(
        sorted(
            (vertex for vertex in row if medians[vertex] is not None),
            key=lambda vertex: medians[vertex] or 0.0,
        )
    )
    return [vertex if medians[vertex] is None else next(free) for vertex in row]


def _median(places: Sequence[int]) -> float | None:
    """The median; between two in the middle the one that leans to the side where the others are closer."""
    half = len(places) // 2
    if not places:
        return None
    if len(places) % 2:
        return float(places[half])
    if len(places) == 2:
        return (places[0] + places[1]) / 2
    left, right = places[half - 1] - places[0], places[-1] - places[half]
    if left + right == 0:
        return (places[half - 1] + places[half]) / 2
    return (places[half - 1] * right + places[half] * left) / (left + right)


def _exchange(rows: Rows, current: list[list[int]]) -> None:
    """Swap neighbours in a row as long as that removes crossings."""
    for place, row in enumerate(current):
        sides = [
            ({vertex: index for index, vertex in enumerate(current[other])}, neighbours)
            for other, neighbours in ((place - 1, rows.above), (place + 1, rows.below))
            if 0 <= other < len(current)
        ]
        for _ in range(len(row)):
            if not _exchange_once(row, sides):
                break


def _exchange_once(row: list[int], sides: Sequence[tuple[dict[int, int], Sequence[Sequence[int]]]]) -> bool:
    changed = False
    for left in range(len(row) - 1):
        a, b = row[left], row[left + 1]
        gain = 0
        for position, neighbours in sides:
            of_a = sorted(position[near] for near in neighbours[a])
            of_b = sorted(position[near] for near in neighbours[b])
            gain += _inversions(of_a, of_b) - _inversions(of_b, of_a)
        if gain > 0:
            row[left], row[left + 1] = b, a
            changed = True
    return changed


def _inversions(left: Sequence[int], right: Sequence[int]) -> int:
    """Crossings of the edges of a vertex with those of the one to the right of it; both sorted."""
    return sum(len(left) - _after(left, place) for place in right)


def _after(places: Sequence[int], place: int) -> int:
    return bisect_left(places, place + 1)


def _crossings(rows: Rows, current: Sequence[Sequence[int]]) -> int:
    total = 0
    for upper, lower in pairwise(current):
        position = {vertex: index for index, vertex in enumerate(lower)}
        ends = [place for vertex in upper for place in sorted(position[near] for near in rows.below[vertex])]
        total += _count_inversions(ends, len(lower))
    return total


def _count_inversions(ends: Sequence[int], size: int) -> int:
    """Pairs in the wrong order, with a binary indexed tree."""
    tree = [0] * (size + 1)
    total = 0
    for seen, end in enumerate(ends):
        at, smaller = end + 1, 0
        while at:
            smaller += tree[at]
            at -= at & -at
        total += seen - smaller
        at = end + 1
        while at <= size:
            tree[at] += 1
            at += at & -at
    return total
