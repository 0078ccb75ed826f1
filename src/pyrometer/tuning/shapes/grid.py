"""Choosing the edges of two dimensions at once: every combination of a row edge and a column edge may become a graph.

Once the edges of one dimension are fixed, the cost of the other is a sum over its buckets, so that its best edges follow
from a dynamic programme in O(n²K). Small cases try every set of row edges with it, which is exact. Larger ones alternate
between the dimensions from several starts until nothing improves; how far from the best that may be is told by a lower bound:
with the columns not padded at all, the best rows cannot cost less, and the other way round.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from pyrometer.errors import InputError
from pyrometer.tuning.shapes.planning import plan_edges
from pyrometer.tuning.shapes.record import GridPlan

PairCost: TypeAlias = Callable[[int, int], float]
"""What a step costs at a row edge and a column edge; it never falls in either."""

Floats: TypeAlias = npt.NDArray[np.float64]

EXACT_SETS = 3000
"""Up to so many sets of row edges are tried one by one."""
ROUNDS = 20


def plan_grid(
    sizes: Mapping[tuple[int, int], int] | Iterable[tuple[int, int]],
    max_graphs: int,
    *,
    step_cost: PairCost | None = None,
    align: tuple[int, int] = (1, 1),
) -> GridPlan:
    """The cheapest grid of edges with at most `max_graphs` combinations of a row edge and a column edge.

    Args:
        sizes: every observed pair of sizes, or pairs with their counts.
        max_graphs: most combinations that may be compiled.
        step_cost: of a step at two edges; their product by default.
        align: edges are multiples of these.

    Raises:
        InputError: no sizes, a size below 1, or a limit below 1.

    >>> plan_grid([(1, 10), (1, 11), (8, 90), (8, 100)], 4).rows
    [1, 8]
    """
    counts = dict(sizes) if isinstance(sizes, Mapping) else dict(Counter(sizes))
    if not counts or max_graphs < 1:
        raise InputError(
            f"grid: got {len(counts)} sizes and {max_graphs} graphs; both must be at least 1 to plan anything"
        )
    if min(min(pair) for pair in counts) < 1:
        raise InputError(f"sizes: got {min(counts)}; both sizes must be at least 1")
    problem = _Problem.of(counts, step_cost or (lambda row, column: float(row * column)), align)
    found = problem.exact(max_graphs) if problem.num_sets(max_graphs) <= EXACT_SETS else None
    rows, columns = found or problem.alternating(max_graphs)
    used = {(_nearest(rows, row), _nearest(columns, column)) for row, column in counts}
    best = problem.cost(rows, columns)
    return GridPlan(
        rows=rows,
        columns=columns,
        num_graphs=len(used),
        step_cost=best,
        ideal_cost=problem.ideal,
        lower_bound=best if found else problem.lower_bound(max_graphs),
        exact=found is not None,
    )


@dataclass(frozen=True)
class _Problem:
    """Aligned sizes of both dimensions, and what was seen of them."""

    rows: list[int]
    columns: list[int]
    seen: Floats
    """Share of the calls by row and column."""
    costs: Floats
    """Of a step by row and column."""
    ideal: float

    @staticmethod
    def of(counts: Mapping[tuple[int, int], int], cost: PairCost, align: tuple[int, int]) -> _Problem:
        total = sum(counts.values())
        aligned: Counter[tuple[int, int]] = Counter()
        for (row, column), count in counts.items():
            aligned[(-(-row // align[0]) * align[0], -(-column // align[1]) * align[1])] += count
        rows, columns = (sorted({pair[side] for pair in aligned}) for side in (0, 1))
        seen = np.zeros((len(rows), len(columns)))
        for (row, column), count in aligned.items():
            seen[rows.index(row), columns.index(column)] = count / total
        costs = np.array([[float(cost(row, column)) for column in columns] for row in rows])
        ideal = sum(count * float(cost(*pair)) for pair, count in counts.items()) / total
        return _Problem(rows, columns, seen, costs, ideal)

    def num_sets(self, max_graphs: int) -> int:
        """How many sets of row edges there are; the largest row is in every one."""
        n = len(self.rows) - 1
        return sum(math.comb(n, k - 1) for k in range(1, min(max_graphs, n + 1) + 1))

    def exact(self, max_graphs: int) -> tuple[list[int], list[int]]:
        """The best grid, by trying every set of row edges."""
        tried = (self._with_rows(chosen, max_graphs // len(chosen)) for chosen in self._row_sets(max_graphs))
        return min(tried, key=lambda found: (found[0], len(found[1]) * len(found[2])))[1:]

    def _row_sets(self, max_graphs: int) -> Iterator[list[int]]:
        *lower, last = range(len(self.rows))
        for size in range(min(max_graphs, len(self.rows))):
            for chosen in itertools.combinations(lower, size):
                yield [*chosen, last]

    def _with_rows(self, chosen: list[int], num_columns: int) -> tuple[float, list[int], list[int]]:
        cost, columns = _segments(_paid(self.seen, self.costs, chosen), num_columns)
        return cost, [self.rows[i] for i in chosen], [self.columns[j] for j in columns]

    def alternating(self, max_graphs: int) -> tuple[list[int], list[int]]:
        """The best of alternating searches, over every split of the limit among the dimensions."""
        best: tuple[float, list[int], list[int]] | None = None
        for num_rows in range(1, min(max_graphs, len(self.rows)) + 1):
            num_columns = max_graphs // num_rows
            rows = self._alone(num_rows)
            for _ in range(ROUNDS):
                found = self._with_rows(rows, num_columns)
                columns = [self.columns.index(edge) for edge in found[2]]
                better = _segments(_paid(self.seen.T, self.costs.T, columns), num_rows)[1]
                if better == rows:
                    break
                rows = better
            if best is None or found[0] < best[0]:
                best = found
        assert best is not None
        return best[1], best[2]

    def _alone(self, num_rows: int) -> list[int]:
        """The best row edges with the columns not padded."""
        return _segments(_unpadded(self.seen, self.costs), num_rows)[1]

    def lower_bound(self, max_graphs: int) -> float:
        """No grid costs less: over the splits of the limit, the larger of both costs with one dimension not padded."""
        by_rows, by_columns = _unpadded(self.seen, self.costs), _unpadded(self.seen.T, self.costs.T)
        bounds = [
            max(_segments(by_rows, num_rows)[0], _segments(by_columns, max_graphs // num_rows)[0])
            for num_rows in range(1, min(max_graphs, len(self.rows)) + 1)
        ]
        return min(bounds)

    def cost(self, rows: list[int], columns: list[int]) -> float:
        """Expected cost of a call with these edges."""
        paid = _paid(self.seen, self.costs, [self.rows.index(edge) for edge in rows])
        chosen = [self.columns.index(edge) for edge in columns]
        start, total = 0, 0.0
        for j in chosen:
            total += float(paid[start : j + 1, j].sum())
            start = j + 1
        return total


def _paid(seen: Floats, costs: Floats, rows: list[int]) -> Floats:
    """What the calls of one column cost, by the column edge that they would run at, with these row edges."""
    edge_of_row = np.searchsorted(rows, np.arange(len(costs)))
    at_edges = costs[np.array(rows)[edge_of_row]]
    result: Floats = seen.T @ at_edges
    return result


def _unpadded(seen: Floats, costs: Floats) -> Floats:
    """What the calls of one row cost, by the row edge that they would run at, with the columns as they are."""
    result: Floats = np.einsum("ic,ec->ie", seen, costs)
    return result


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


def _nearest(edges: list[int], size: int) -> int:
    return next(edge for edge in edges if edge >= size)


def plan_each(
    sizes: Iterable[tuple[int, ...]], max_graphs: int, *, align: tuple[int, ...] | None = None
) -> list[list[int]]:
    """Edges of any number of dimensions, each planned for itself with the same share of the limit.

    The number of graphs per dimension is the largest whose power stays within `max_graphs`; a dimension with fewer sizes
    leaves its share to the others.

    Raises:
        InputError: no sizes, or a size below 1.

    >>> plan_each([(1, 10, 5), (1, 20, 6)], 4)
    [[1], [10, 20], [5, 6]]
    """
    seen = list(sizes)
    dimensions = list(zip(*seen, strict=True))
    aligned = align or (1,) * len(dimensions)
    edges: dict[int, list[int]] = {}
    left, order = max_graphs, sorted(range(len(dimensions)), key=lambda d: len(set(dimensions[d])))
    for position, dimension in enumerate(order):
        share = max(1, _root(left, len(order) - position))
        points = plan_edges(dimensions[dimension], share, align=aligned[dimension])
        edges[dimension] = points.pareto[-1].edges
        left = max(1, left // len(edges[dimension]))
    return [edges[dimension] for dimension in range(len(dimensions))]


def _root(value: int, degree: int) -> int:
    root = int(value ** (1 / degree))
    return root + 1 if (root + 1) ** degree <= value else root
