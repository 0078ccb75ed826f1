"""Rows of a layered drawing: every edge leads to a lower row, and edges are short."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

_SWEEPS = 4


def assign_layers(num_boxes: int, edges: Collection[tuple[int, int]]) -> list[int]:
    """A row for each box: the longest path that leads to it, then moved where its edges are shorter.

    Args:
        num_boxes: how many boxes there are; every edge leads from a smaller number to a larger one.
        edges: pairs of boxes.

    >>> assign_layers(5, [(0, 1), (1, 2), (2, 4), (3, 4)])
    [0, 1, 2, 2, 3]
    """
    above: list[list[int]] = [[] for _ in range(num_boxes)]
    below: list[list[int]] = [[] for _ in range(num_boxes)]
    for source, target in sorted(edges):
        above[target].append(source)
        below[source].append(target)
    layers = [0] * num_boxes
    for box in range(num_boxes):
        layers[box] = max((layers[source] + 1 for source in above[box]), default=0)
    for _ in range(_SWEEPS):
        moved = _shorten(layers, above, below, reversed(range(num_boxes)))
        moved |= _shorten(layers, above, below, range(num_boxes))
        if not moved:
            break
    return _without_empty(layers)


def _shorten(
    layers: list[int],
    above: Sequence[Sequence[int]],
    below: Sequence[Sequence[int]],
    boxes: Iterable[int],
) -> bool:
    """Move boxes with more edges on one side as far to that side as their neighbours allow."""
    moved = False
    for box in boxes:
        ups, downs = len(above[box]), len(below[box])
        goal = layers[box]
        if downs > ups:
            goal = min(layers[target] for target in below[box]) - 1
        elif ups > downs:
            goal = max(layers[source] for source in above[box]) + 1
        moved |= goal != layers[box]
        layers[box] = goal
    return moved


def _without_empty(layers: Sequence[int]) -> list[int]:
    rank = {layer: place for place, layer in enumerate(sorted(set(layers)))}
    return [rank[layer] for layer in layers]
