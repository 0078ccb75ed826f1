r"""Choosing the edges of buckets: exactly, by dynamic programming.

Sizes \(s_1 < … < s_n\) were seen \(w_i\) times; a step at size \(e\) costs \(c(e)\), which never falls. At most K edges are
chosen so that \(\sum_i w_i\, c(\text{nearest edge} ≥ s_i)\) is least. Since \(c\) never falls, moving an edge down to the
nearest (aligned) size that was seen never costs more, so only those need be looked at. With \(W_j = w_1 + … + w_j\),

\[F_k(j) = \min_{i<j}\; F_{k-1}(i) + (W_j - W_i)\, c(e_j)\]

is a lower envelope of lines in \(c(e_j)\) with falling slopes \(-W_i\), asked at rising places: O(n) per number of graphs by a
monotone convex hull, O(nK) in all, and every smaller number of graphs comes along for nothing.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import numpy as np

from pyrometer.errors import InputError
from pyrometer.loading.figures import require_count
from pyrometer.quantity import Seconds
from pyrometer.tuning.shapes.record import EdgePlan, ParetoPoint

StepCost: TypeAlias = Callable[[int], float]
"""What a step costs at a size; it never falls as the size grows."""

NEAR_IDEAL = 0.05
"""Without a price of compiling: so near to no padding at all, further graphs are not worth their while."""


def plan_edges(
    sizes: Mapping[int, int] | Iterable[int],
    max_graphs: int,
    *,
    step_cost: StepCost | None = None,
    align: int = 1,
    cover: int | None = None,
    compile_cost: float | None = None,
    expected_calls: int | None = None,
) -> EdgePlan:
    """The cheapest edges for sizes like those observed.

    Args:
        sizes: every observed size, or sizes with their counts.
        max_graphs: most edges, and so graphs, that may be chosen.
        step_cost: measured times (`measured_cost`), or any function that never falls; the size itself by default.
        align: edges are multiples of this, such as 8 for tensor cores.
        cover: largest size that must fit although it may not have been observed.
        compile_cost: of one graph, in the unit of `step_cost`.
        expected_calls: over which `compile_cost` is spread; the number of observed sizes by default.

    Returns:
        The plan with the number of graphs that is cheapest once compiling is counted; without `compile_cost` the fewest
        that come within 5 % of no padding, or else `max_graphs`.

    Raises:
        InputError: no sizes, a size below 1, a cost that falls, or a limit below 1.

    >>> plan_edges([10, 10, 10, 60, 61, 100], 2).edges
    [10, 100]
    >>> plan_edges([10, 10, 10, 60, 61, 100], 2, align=8).edges
    [16, 104]
    """
    counts = size_counts(sizes)
    require_count("max_graphs", max_graphs)
    require_count("align", align)
    table = _Table(counts, align, cover, step_cost or float)
    calls = expected_calls if expected_calls is not None else table.total
    require_count("expected_calls", calls)
    pareto = [
        table.point(k, (compile_cost or 0.0) / calls) for k in range(1, min(max_graphs, table.num_edges) + 1)
    ]
    chosen = _recommended(pareto, table.ideal, priced=compile_cost is not None)
    return EdgePlan(
        edges=chosen.edges,
        step_cost=chosen.step_cost,
        ideal_cost=table.ideal,
        padding_share=padding_share(counts, chosen.edges),
        pareto=pareto,
    )


def measured_cost(times_s: Mapping[int, Seconds]) -> StepCost:
    """A cost from measured step times: made non-falling by isotonic regression, and linear between the sizes.

    Below the smallest measured size its time holds; above the largest the cost grows in proportion to the size.

    >>> cost = measured_cost({64: 1.0, 96: 0.8, 128: 3.0})
    >>> round(cost(64), 3), round(cost(96), 3), round(cost(112), 3), round(cost(256), 3)
    (0.9, 0.9, 1.95, 6.0)

    Raises:
        InputError: nothing measured, or a time that is not positive.
    """
    if not times_s or min(times_s.values()) <= 0:
        raise InputError(
            f"step times: got {dict(times_s)}; give at least one positive time by size, such as {{128: 0.01}}"
        )
    sizes = np.array(sorted(times_s), dtype=np.float64)
    times = _isotonic([times_s[size] for size in sorted(times_s)])

    def cost(size: int) -> float:
        if size > sizes[-1]:
            return float(times[-1] * size / sizes[-1])
        return float(np.interp(size, sizes, times))

    return cost


def padding_share(counts: Mapping[int, int], edges: list[int]) -> float:
    """Share of padding among what is computed at these edges; sizes beyond the last are not padded.

    >>> padding_share({50: 1, 100: 1}, [100])
    0.25
    """
    real = padded = 0
    for size, count in counts.items():
        edge = next((edge for edge in edges if edge >= size), size)
        real, padded = real + size * count, padded + edge * count
    return 1 - real / padded if padded else 0.0


def size_counts(sizes: Mapping[int, int] | Iterable[int]) -> dict[int, int]:
    """How often each size was seen, smallest first.

    Raises:
        InputError: nothing was seen, or a size or a count below 1.
    """
    counts = dict(sorted((sizes if isinstance(sizes, Mapping) else Counter(sizes)).items()))
    if not counts:
        raise InputError("sizes: none were given; a plan needs at least one observed size")
    for size, count in counts.items():
        if size < 1 or count < 1:
            raise InputError(f"sizes: got {size} seen {count} times; both must be at least 1")
    return counts


class _Table:
    """The dynamic programme over the distinct edges; `best[k][j]`: cheapest for the first j edges with k graphs."""

    def __init__(self, counts: Mapping[int, int], align: int, cover: int | None, cost: StepCost) -> None:
        weights: dict[int, int] = {}
        for size, count in [*counts.items(), *([(cover, 0)] if cover is not None else [])]:
            edge = -(-size // align) * align
            weights[edge] = weights.get(edge, 0) + count
        self.edges = sorted(weights)
        self.num_edges = len(self.edges)
        self.total = sum(counts.values())
        self.ideal = sum(count * cost(size) for size, count in counts.items()) / self.total
        self._costs = _never_falling(self.edges, cost)
        self._seen = np.cumsum([0, *(weights[edge] for edge in self.edges)]).tolist()
        self._best = [[0.0] + [np.inf] * self.num_edges]
        self._cut: list[list[int]] = [[0] * (self.num_edges + 1)]

    def point(self, num_graphs: int, compile_cost: float) -> ParetoPoint:
        """The cheapest plan with exactly so many graphs."""
        while len(self._best) <= num_graphs:
            self._add_row()
        cost = self._best[num_graphs][-1] / self.total
        return ParetoPoint(
            num_graphs=num_graphs,
            edges=self._edges(num_graphs),
            step_cost=cost,
            total_cost=cost + num_graphs * compile_cost,
        )

    def _add_row(self) -> None:
        before, seen = self._best[-1], self._seen
        best, cut = [np.inf] * (self.num_edges + 1), [0] * (self.num_edges + 1)
        hull: list[int] = []
        start = 0
        for j in range(1, self.num_edges + 1):
            if before[j - 1] < np.inf:
                _add_line(hull, j - 1, before, seen, start)
            start = min(start, max(len(hull) - 1, 0))
            cost = self._costs[j - 1]
            while start + 1 < len(hull) and _at(hull[start + 1], cost, before, seen) <= _at(
                hull[start], cost, before, seen
            ):
                start += 1
            if hull:
                best[j] = _at(hull[start], cost, before, seen) + seen[j] * cost
                cut[j] = hull[start]
        self._best.append(best)
        self._cut.append(cut)

    def _edges(self, num_graphs: int) -> list[int]:
        edges, last = [], self.num_edges
        for k in range(num_graphs, 0, -1):
            edges.append(self.edges[last - 1])
            last = self._cut[k][last]
        return edges[::-1]


def _at(i: int, cost: float, before: list[float], seen: list[int]) -> float:
    """The line of cut i, at a cost."""
    return before[i] - seen[i] * cost


def _add_line(hull: list[int], new: int, before: list[float], seen: list[int], start: int) -> None:
    """Add a cut to the lower envelope and drop those that are nowhere lowest any more; slopes only fall."""
    while len(hull) - start >= 2:
        first, middle = hull[-2], hull[-1]
        # Where `new` undercuts `first`, against where `middle` does.
        if (before[new] - before[first]) * (seen[middle] - seen[first]) > (before[middle] - before[first]) * (
            seen[new] - seen[first]
        ):
            break
        hull.pop()
    hull.append(new)


def _never_falling(edges: list[int], cost: StepCost) -> list[float]:
    costs = [float(cost(edge)) for edge in edges]
    for (small, low), (large, high) in itertools.pairwise(zip(edges, costs, strict=True)):
        if high < low:
            raise InputError(
                f"step_cost: falls from {low:.4g} at size {small} to {high:.4g} at {large}; a plan needs a cost that never "
                "falls with the size; measured_cost(times) makes one of measured times"
            )
    return costs


def _recommended(pareto: list[ParetoPoint], ideal: float, *, priced: bool) -> ParetoPoint:
    if priced:
        return min(pareto, key=lambda point: (point.total_cost, point.num_graphs))
    near = (point for point in pareto if point.step_cost <= ideal * (1 + NEAR_IDEAL))
    return next(near, pareto[-1])


def _isotonic(values: list[float]) -> list[float]:
    """The nearest non-falling sequence in least squares: neighbours that fall are pooled."""
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, count = float(value), 1
        while pools and pools[-1][0] > mean:
            other, others = pools.pop()
            mean, count = (mean * count + other * others) / (count + others), count + others
        pools.append((mean, count))
    return [mean for mean, count in pools for _ in range(count)]
