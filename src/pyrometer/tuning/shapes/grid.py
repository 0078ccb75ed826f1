"""Choosing the edges of several sizes at once: every combination of their edges may become a graph.

Once the edges of all sizes but one are fixed, the cost of that one is a sum over its buckets, so that its best edges follow from a
dynamic programme in O(n²K). The sizes are gone through in turn until nothing improves, for every way to share the graphs out among
them. Where the first of two has few sets of edges, each of them is begun with, which is exact.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pyrometer.errors import InputError
from pyrometer.tuning.shapes.axes import Sizes

Floats = npt.NDArray[np.float64]
FEW_SETS = 60
"""Up to so many sets of edges of the first size are begun with, one by one."""

ROUNDS = 20


def plan_grid(
    seen: Mapping[Sizes, int], max_graphs: int, cost: Callable[[Sizes], float], align: Sizes
) -> list[list[int]]:
    """The edges of each size, with at most `max_graphs` combinations, at which calls like these cost least.

    Args:
        seen: combinations of sizes, with their counts.
        max_graphs: most combinations of edges.
        cost: of a step at a combination of edges; it never falls in any of them.
        align: edges are multiples of these.

    Raises:
        InputError: a size below 1.

    >>> plan_grid({(1, 10): 1, (1, 11): 1, (8, 90): 1, (8, 100): 1}, 4, math.prod, (1, 1))
    [[1, 8], [11, 100]]
    """
    if min(map(min, seen)) < 1:
        raise InputError(f"sizes: got {min(seen)}; all sizes must be at least 1")
    grid = _Grid(seen, cost, align)
    found = (
        grid.improved(start, shares)
        for shares in _shares(max_graphs, [len(own) for own in grid.edges])
        for start in grid.starts(shares[0])
    )
    return min(found, key=lambda each: (each[0], math.prod(map(len, each[1]))))[1]


def _shares(limit: int, lengths: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """How many edges each size may have: the product keeps within the limit."""
    if len(lengths) == 1:
        yield (limit,)
        return
    for number in range(1, min(limit, lengths[0]) + 1):
        for rest in _shares(limit // number, lengths[1:]):
            yield (number, *rest)


class _Grid:
    """What was seen, at sizes that are aligned; `edges` are those of each size at which nothing is padded further."""

    def __init__(self, seen: Mapping[Sizes, int], cost: Callable[[Sizes], float], align: Sizes) -> None:
        steps = np.array(align)
        self._sizes = -(-np.array(list(seen)) // steps) * steps
        self._counts = np.array(list(seen.values()), dtype=np.float64)
        self._cost = functools.lru_cache(maxsize=2**16)(cost)
        self.edges: list[list[int]] = [sorted(set(column)) for column in self._sizes.T.tolist()]
        self._unpadded = [self._paid(size, self.edges) for size in range(len(align))]

    def starts(self, number: int) -> Iterator[list[list[int]]]:
        """What to begin with: of two sizes every set of so many edges of the first where they are few, else nothing padded."""
        *lower, last = self.edges[0]
        if len(self.edges) > 2 or math.comb(len(lower), number - 1) > FEW_SETS:
            yield self.edges
            return
        for chosen in itertools.combinations(lower, number - 1):
            yield [[*chosen, last], *self.edges[1:]]

    def improved(self, edges: list[list[int]], shares: Sequence[int]) -> tuple[float, list[list[int]]]:
        """The edges of each size in turn, the last first, as long as that improves them; and what calls cost with them."""
        cost = math.inf
        for _ in range(ROUNDS):
            before = edges
            for size in reversed(range(len(edges))):
                paid = self._unpadded[size] if edges is self.edges else self._paid(size, edges)
                cost, chosen = _segments(paid, shares[size])
                edges = [*edges[:size], [self.edges[size][i] for i in chosen], *edges[size + 1 :]]
            if edges == before:
                break
        return cost, edges

    def _paid(self, size: int, edges: list[list[int]]) -> Floats:
        """What calls cost by their own size and the edge that they would run at, the other sizes being at their edges."""
        columns = zip(edges, self._sizes.T, strict=True)
        at_edges = np.stack([np.array(own)[np.searchsorted(own, column)] for own, column in columns], axis=1)
        others, which = np.unique(np.delete(at_edges, size, axis=1), axis=0, return_inverse=True)
        counts = np.zeros((len(others), len(self.edges[size])))
        np.add.at(
            counts,
            (which.reshape(-1), np.searchsorted(self.edges[size], self._sizes[:, size])),
            self._counts,
        )
        costs = [
            [self._cost((*other[:size], edge, *other[size:])) for edge in self.edges[size]]
            for other in others.tolist()
        ]
        paid: Floats = counts.T @ np.array(costs, dtype=np.float64)
        return paid


def _segments(paid: Floats, num_edges: int) -> tuple[float, list[int]]:
    """The cheapest at most `num_edges` edges where size i costs `paid[i, j]` at edge j; the last size is an edge.

    O(n²K): whether a faster search holds depends on the cost, so none is used.
    """
    n = len(paid)
    sums = np.vstack([np.zeros(n), np.cumsum(paid, axis=0)])
    # step[i, j]: sizes i..j at edge j; infinite where i > j.
    step = np.where(np.tri(n, n, -1, dtype=bool), np.inf, sums[np.arange(1, n + 1), np.arange(n)] - sums[:n])
    best, cuts = step[0], [np.zeros(n, dtype=np.int64)]
    history = [best]
    for _ in range(1, min(num_edges, n)):
        before = np.concatenate([[np.inf], best[:-1]])
        table = before[:, None] + step
        cuts.append(table.argmin(axis=0))
        best = table.min(axis=0)
        history.append(best)
    used = int(np.argmin([row[-1] for row in history]))
    cost, edges, last = float(history[used][-1]), [], n - 1
    for k in range(used, -1, -1):
        edges.append(last)
        last = int(cuts[k][last]) - 1
    return cost, edges[::-1]
