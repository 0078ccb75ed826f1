"""Edges of two sizes at once: exact where all can be tried, within a told bound where not."""

from __future__ import annotations

import itertools
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import InputError
from pyrometer.tuning.shapes import grid
from pyrometer.tuning.shapes.grid import plan_each, plan_grid

COSTS = {
    "area": lambda row, column: float(row * column),
    "attention": lambda row, column: row * (5.0 + column * column),
    "longest": lambda row, column: float(max(row, column)),
}
PAIRS = st.dictionaries(
    st.tuples(st.integers(1, 16), st.integers(1, 40)), st.integers(1, 9), min_size=1, max_size=6
)


def cheapest(counts, max_graphs, cost):
    """By trying every grid."""
    rows, columns = (sorted({pair[side] for pair in counts}) for side in (0, 1))

    def subsets(edges, most):
        for size in range(min(most, len(edges))):
            for lower in itertools.combinations(edges[:-1], size):
                yield [*lower, edges[-1]]

    return min(
        sum(
            count * cost(next(e for e in own if e >= row), next(e for e in others if e >= column))
            for (row, column), count in counts.items()
        )
        for own in subsets(rows, max_graphs)
        for others in subsets(columns, max_graphs // len(own))
    ) / sum(counts.values())


@given(counts=PAIRS, max_graphs=st.integers(1, 6), cost=st.sampled_from(sorted(COSTS)))
def test_no_grid_is_cheaper_and_the_heuristic_stays_above_its_bound(counts, max_graphs, cost):
    best = cheapest(counts, max_graphs, COSTS[cost])
    exact = plan_grid(counts, max_graphs, step_cost=COSTS[cost])
    assert exact.exact
    assert exact.step_cost == pytest.approx(best)
    assert len(exact.rows) * len(exact.columns) <= max_graphs
    with mock.patch.object(grid, "EXACT_SETS", 0):
        quick = plan_grid(counts, max_graphs, step_cost=COSTS[cost])
    assert not quick.exact
    assert quick.lower_bound <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= quick.step_cost
    assert len(quick.rows) * len(quick.columns) <= max_graphs


def test_only_cells_that_are_used_count_as_graphs():
    plan = plan_grid([(1, 500), (32, 20)], 4)
    assert plan.rows == [1, 32]
    assert plan.columns == [20, 500]
    assert plan.num_graphs == 2
    assert plan.step_cost == plan.ideal_cost


def test_edges_are_aligned_each_in_its_own_way():
    plan = plan_grid([(3, 30), (5, 61)], 4, align=(4, 16))
    assert all(edge % 4 == 0 for edge in plan.rows)
    assert all(edge % 16 == 0 for edge in plan.columns)


def test_many_dimensions_share_the_limit():
    sizes = [(batch, length, width) for batch in (1, 2) for length in range(1, 30) for width in range(1, 30)]
    edges = plan_each(sizes, 12)
    product = 1
    for own in edges:
        product *= len(own)
    assert product <= 12
    assert [own[-1] for own in edges] == [2, 29, 29]


@pytest.mark.parametrize("sizes", [[], [(0, 4)]])
def test_what_cannot_be_planned_is_told(sizes):
    with pytest.raises(InputError, match="at least 1"):
        plan_grid(sizes, 4)
