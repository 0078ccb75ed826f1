"""Edges of buckets are the cheapest there are, whatever the cost and the sizes."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import InputError
from pyrometer.tuning.shapes.planning import measured_cost, padding_share, plan_edges

COSTS = {
    "linear": float,
    "quadratic": lambda size: size * size + 7.0,
    "flat": lambda _size: 3.0,
    "steps": lambda size: float(-(-size // 16)),
    "saturating": lambda size: 100.0 - 90.0 / size,
}


def paid(counts, edges, cost):
    """What all observed sizes cost at these edges."""
    return sum(count * cost(next(edge for edge in edges if edge >= size)) for size, count in counts.items())


def cheapest(counts, num_graphs, cost, align):
    """By trying every set of aligned edges."""
    candidates = sorted({-(-size // align) * align for size in counts})
    sets = itertools.combinations(candidates, num_graphs)
    return min(paid(counts, edges, cost) for edges in sets if edges[-1] == candidates[-1])


@given(
    counts=st.dictionaries(st.integers(1, 80), st.integers(1, 20), min_size=1, max_size=8),
    max_graphs=st.integers(1, 6),
    cost=st.sampled_from(sorted(COSTS)),
    align=st.sampled_from([1, 4, 8]),
)
def test_no_set_of_edges_is_cheaper(counts, max_graphs, cost, align):
    plan = plan_edges(counts, max_graphs, step_cost=COSTS[cost], align=align)
    total = sum(counts.values())
    for point in plan.pareto:
        assert point.step_cost * total == pytest.approx(
            cheapest(counts, point.num_graphs, COSTS[cost], align), rel=1e-9
        )
        assert point.step_cost * total == pytest.approx(paid(counts, point.edges, COSTS[cost]), rel=1e-9)
        assert len(point.edges) == point.num_graphs
        assert all(edge % align == 0 for edge in point.edges)
        assert point.edges[-1] >= max(counts)


def test_more_graphs_never_cost_more_per_step():
    rng = random.Random(1)
    plan = plan_edges([rng.randint(1, 500) for _ in range(3000)], 32)
    costs = [point.step_cost for point in plan.pareto]
    assert costs == sorted(costs, reverse=True)
    assert len(plan.pareto) == 32


def test_compiling_that_hardly_pays_asks_for_few_graphs_and_cheap_compiling_for_many():
    sizes = list(range(1, 101))
    dear = plan_edges(sizes, 20, compile_cost=1e6, expected_calls=1000)
    cheap = plan_edges(sizes, 20, compile_cost=1.0, expected_calls=1_000_000)
    assert len(dear.edges) == 1
    assert len(cheap.edges) == 20
    best = min(dear.pareto, key=lambda point: point.total_cost)
    assert dear.edges == best.edges


def test_without_a_price_of_compiling_the_fewest_graphs_near_no_padding_are_taken():
    plan = plan_edges([64] * 50 + [128] * 50, 8)
    assert plan.edges == [64, 128]
    assert plan.padding_share == 0
    assert plan.step_cost == plan.ideal_cost == 96


def test_a_size_to_be_covered_gets_an_edge_though_it_was_never_seen():
    assert plan_edges([10, 20], 3, cover=64).pareto[-1].edges[-1] == 64
    assert plan_edges([10, 20], 1, cover=5).edges == [20]


def test_measured_times_that_fall_are_pooled_and_interpolated():
    cost = measured_cost({10: 2.0, 20: 1.0, 40: 4.0})
    assert cost(10) == cost(20) == 1.5
    assert cost(30) == pytest.approx(2.75)
    assert cost(5) == 1.5
    assert cost(80) == pytest.approx(8.0)
    values = [cost(size) for size in range(1, 100)]
    assert values == sorted(values)


def test_edges_follow_the_measured_time_and_not_the_size():
    # All up to 64 take the same time: edges in there would be graphs for nothing.
    cost = measured_cost({1: 1.0, 64: 1.0, 65: 5.0, 128: 5.0})
    assert plan_edges(range(1, 129), 2, step_cost=cost).edges == [64, 128]


def test_padding_share_of_uniform_sizes_is_that_of_the_arithmetic():
    sizes = dict.fromkeys(range(101, 201), 1)
    assert padding_share(sizes, [200]) == pytest.approx(1 - sum(sizes) / (100 * 200))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (([], 2), "none were given"),
        (([0, 3], 2), "got 0"),
        (([3], 0), "max_graphs: got 0"),
        (({3: 0}, 1), "seen 0 times"),
    ],
)
def test_what_cannot_be_planned_is_told(arguments, told):
    with pytest.raises(InputError, match=told):
        plan_edges(*arguments)


def test_a_cost_that_falls_is_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"falls from 8 at size 8 to 1 at 9.*measured_cost"):
        plan_edges([8, 9], 2, step_cost=lambda size: 8.0 if size == 8 else 1.0)


def test_times_that_are_none_are_refused():
    with pytest.raises(InputError, match="at least one positive time"):
        measured_cost({})
    with pytest.raises(InputError, match="at least one positive time"):
        measured_cost({8: 0.0})
