"""Which part of a value is asked for: along some of its dimensions, only a share of the positions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

from pyrometer.quantity import Ratio

WHOLE = 0.999
"""From this share on, all of it is asked for."""

Shape = Sequence[int]


class Demand(NamedTuple):
    """A share of the positions along some dimensions; of all others everything.

    Attributes:
        dims: the dimensions that the selection is along, together.
        share: of the positions along them.
        origin: the call that selects.
        regular: the part is a slice, the same each time, and not picked by values.
        part: tells which part it is: readers of one part ask for it together.
    """

    dims: frozenset[int]
    share: Ratio
    origin: int
    regular: bool
    part: tuple[Hashable, ...] = ()

    def along(self, dims: Iterable[int]) -> Demand | None:
        """The same along other dimensions; everything where there are none."""
        chosen = frozenset(dims)
        return self._replace(dims=chosen) if chosen else None

    def times(self, dims: Iterable[int], share: Ratio) -> Demand:
        """With a further selection."""
        return self._replace(dims=self.dims | frozenset(dims), share=self.share * share)


def together(demands: Sequence[Demand | None]) -> Demand | None:
    """What several readers ask for at most; `None` is everything.

    >>> left, right = Demand(frozenset({1}), 0.3, 7, True), Demand(frozenset({1}), 0.3, 8, True)
    >>> together([left, right]).share, together([left, None])
    (0.6, None)
    """
    if not demands or any(demand is None for demand in demands):
        return None
    known = [demand for demand in demands if demand is not None]
    parts = {demand.part or (number,): demand.share for number, demand in enumerate(known)}
    share = sum(parts.values())
    if len({demand.dims for demand in known}) > 1 or share >= WHOLE:
        return None
    largest = max(known, key=lambda demand: demand.share)
    return largest._replace(
        share=share,
        regular=all(demand.regular for demand in known),
        part=largest.part if len(parts) == 1 else tuple(parts),
    )


def reshaped(demand: Demand, shape: Shape, before: Shape) -> Demand | None:
    """A demand on what a view made of the shape `before`, as one on that.

    >>> reshaped(Demand(frozenset({0}), 0.2, 7, False), (12, 5), (3, 4, 5)).dims
    frozenset({0, 1})
    """
    dims: set[int] = set()
    for left, right in _groups(before, shape):
        wanted = demand.dims.intersection(right)
        if wanted:
            dims.update(dim for dim in left if before[dim] > 1)
    return demand.along(dims)


def _groups(before: Shape, after: Shape) -> Iterable[tuple[list[int], list[int]]]:
    """Dimensions that hold the same elements, before and after."""
    left: list[int] = []
    right: list[int] = []
    i = j = 0
    sizes = [1, 1]
    while i < len(before) or j < len(after):
        if i < len(before) and (sizes[0] <= sizes[1] or j == len(after)):
            sizes[0] *= before[i]
            left.append(i)
            i += 1
        else:
            sizes[1] *= after[j]
            right.append(j)
            j += 1
        if sizes[0] == sizes[1] and left and right:
            yield left, right
            left, right, sizes = [], [], [1, 1]
    if left or right:
        yield left, right


def broadcast(demand: Demand, shape: Shape, operand: Shape) -> Demand | None:
    """A demand on the result of an operator that broadcasts, as one on an operand; everything of what is repeated."""
    shift = len(shape) - len(operand)
    dims = {dim - shift for dim in demand.dims}
    if any(dim < 0 or operand[dim] != shape[dim + shift] for dim in dims):
        return None
    return demand.along(dims)


def reduced(demand: Demand, over: Iterable[int], rank: int, *, keeps: bool) -> Demand | None:
    """A demand on the result of a reduction, as one on what was reduced."""
    gone = {dim % rank for dim in over}
    if keeps:
        return demand.along(dim for dim in demand.dims if dim not in gone)
    left = [dim for dim in range(rank) if dim not in gone]
    return demand.along(left[dim] for dim in demand.dims if dim < len(left))
