"""Putting nodes in order, and giving each at most two edges, changes no longest path."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.trace.dependencies.order import pair, topological


@st.composite
def graphs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times, and edges from earlier to later nodes with weights; node 0 comes first, and all others have an edge."""
    number = draw(st.integers(2, 12))
    time = np.sort(
        np.array([0, *draw(st.lists(st.integers(0, 4), min_size=number - 1, max_size=number - 1))])
    )
    edges = [(draw(st.integers(0, target - 1)), target) for target in range(1, number)]
    more = draw(st.lists(st.tuples(st.integers(0, number - 1), st.integers(1, number - 1)), max_size=20))
    edges += [(source, target) for source, target in more if source < target]
    source, target = np.array(edges).T
    weight = np.array(draw(st.lists(st.integers(0, 9), min_size=len(edges), max_size=len(edges))))
    return time, source, target, weight


@given(graphs())
def test_every_node_stands_behind_what_it_waits_for(
    graph: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    time, source, target, _ = graph
    position = topological(time, source, target)
    assert sorted(position.tolist()) == list(range(len(time)))
    assert (position[source] < position[target]).all()
    assert (np.diff(time[np.argsort(position)]) >= 0).all()


@given(graphs())
def test_two_edges_per_node_give_the_same_longest_paths(
    graph: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    time, source, target, weight = graph
    longest = np.zeros(len(time), np.int64)
    for node in range(1, len(time)):
        into = target == node
        longest[node] = (longest[source[into]] + weight[into]).max()
    pairs = pair(topological(time, source, target), source, target)
    found = np.zeros(len(pairs.node), np.int64)
    for i in range(1, len(found)):
        assert (pairs.source[:, i] < i).all()
        found[i] = max(
            found[pairs.source[slot, i]] + (weight[pairs.edge[slot, i]] if pairs.edge[slot, i] >= 0 else 0)
            for slot in (0, 1)
        )
    assert found[~pairs.is_pass].tolist() == longest[pairs.node[~pairs.is_pass]].tolist()
    assert sorted(set(pairs.edge[pairs.edge >= 0].tolist())) == list(range(len(source)))


@pytest.mark.parametrize("native", [True, False])
def test_a_chain_within_one_moment_takes_time_in_proportion_to_its_length(
    native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a trace is cut: all that lies behind the cut stands at its moment."""
    monkeypatch.setenv("PYROMETER_NATIVE", str(int(native)))
    nodes = np.random.default_rng(0).permutation(200_000)
    position = topological(np.zeros(len(nodes), np.int64), nodes[:-1], nodes[1:])
    assert (position[nodes] == np.arange(len(nodes))).all()
