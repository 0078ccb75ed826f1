"""Edges of several sizes at once: exact for two where all sets of one can be tried, and never beyond the limit."""

from __future__ import annotations

import itertools
import math
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import InputError
from pyrometer.tuning.shapes import grid
from pyrometer.tuning.shapes.grid import plan_grid

COSTS = {
    "area": math.prod,
    "attention": lambda sizes: sizes[0] * (5.0 + sizes[1] * sizes[1]),
    "longest": max,
}
PAIRS = st.dictionaries(
    st.tuples(st.integers(1, 16), st.integers(1, 40)), st.integers(1, 9), min_size=1, max_size=6
)


def paid(counts, edges, cost):
    """What all calls cost at the nearest edges."""
    return sum(
        count * cost(tuple(next(e for e in own if e >= size) for own, size in zip(edges, sizes, strict=True)))
        for sizes, count in counts.items()
    )


def cheapest(counts, max_graphs, cost):
    """By trying every grid."""
    rows, columns = (sorted({pair[side] for pair in counts}) for side in (0, 1))

    def subsets(edges, most):
        for size in range(min(most, len(edges))):
            for lower in itertools.combinations(edges[:-1], size):
                yield [*lower, edges[-1]]

    return min(
        paid(counts, (own, others), cost)
        for own in subsets(rows, max_graphs)
        for others in subsets(columns, max_graphs // len(own))
    )


@given(counts=PAIRS, max_graphs=st.integers(1, 6), cost=st.sampled_from(sorted(COSTS)))
def test_no_grid_of_two_sizes_is_cheaper_and_the_heuristic_keeps_the_limit(counts, max_graphs, cost):
    best = cheapest(counts, max_graphs, COSTS[cost])
    exact = plan_grid(counts, max_graphs, COSTS[cost], (1, 1))
    assert paid(counts, exact, COSTS[cost]) == pytest.approx(best)
    assert math.prod(map(len, exact)) <= max_graphs
    with mock.patch.object(grid, "FEW_SETS", 0):
        quick = plan_grid(counts, max_graphs, COSTS[cost], (1, 1))
    assert best * (1 - 1e-9) <= paid(counts, quick, COSTS[cost]) <= 2 * best
    assert math.prod(map(len, quick)) <= max_graphs


def test_edges_are_aligned_each_in_its_own_way():
    rows, columns = plan_grid({(3, 30): 1, (5, 61): 1}, 4, math.prod, (4, 16))
    assert all(edge % 4 == 0 for edge in rows)
    assert all(edge % 16 == 0 for edge in columns)


def test_many_sizes_share_the_limit_and_pad_less_than_one_graph_would():
    seen = {
        (batch, length, width): 1
        for batch in (1, 2)
        for length in range(1, 30, 4)
        for width in range(1, 30, 4)
    }
    edges = plan_grid(seen, 12, math.prod, (1, 1, 1))
    assert math.prod(map(len, edges)) <= 12
    assert [own[-1] for own in edges] == [2, 29, 29]
    assert paid(seen, edges, math.prod) < 0.6 * paid(seen, [[2], [29], [29]], math.prod)


def test_a_size_below_one_is_refused():
    with pytest.raises(InputError, match="at least 1"):
        plan_grid({(0, 4): 1}, 4, math.prod, (1, 1))
