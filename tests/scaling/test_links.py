"""What collectives take on links of known latency and bandwidth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.scaling.links import collective_s, fit, hops, wire_bytes
from pyrometer.scaling.record import LinkFit, Links

FAST = LinkFit(alpha_s=1e-6, beta_s=1e-11, error=0.0)
SLOW = LinkFit(alpha_s=2e-5, beta_s=1e-10, error=0.0)
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter")


def links(**fields):
    return Links(backend="nccl", ranks_measured=2, inside=FAST, **fields)


@given(alpha_us=st.floats(1, 1000), gigabytes=st.floats(0.1, 100), ranks=st.sampled_from([2, 4, 8]))
def test_the_fit_finds_the_links_that_made_the_times(alpha_us, gigabytes, ranks):
    alpha_s, beta_s = alpha_us * 1e-6, 1e-9 / gigabytes
    measured = [
        (operation, size, hops(operation, ranks) * alpha_s + wire_bytes(operation, size, ranks) * beta_s)
        for operation in OPERATIONS
        for size in (1_000, 100_000, 10_000_000, 1_000_000_000)
    ]
    found = fit(measured, ranks)
    assert found.alpha_s == pytest.approx(alpha_s, rel=1e-3)
    assert found.beta_s == pytest.approx(beta_s, rel=1e-3)
    assert found.error < 1e-6


def test_a_collective_that_is_no_ring_is_predicted_as_it_was_measured():
    sizes = (10_000, 1_000_000, 100_000_000)
    measured = [(operation, size, 1e-4 + size * 1e-9) for operation in OPERATIONS for size in sizes]
    found = Links(backend="gloo", ranks_measured=2, inside=fit(measured, 2))
    assert found.inside.error < 1e-6
    for operation in OPERATIONS:
        assert collective_s(operation, 1_000_000, 2, found) == pytest.approx(1.1e-3, rel=1e-3)


def test_a_large_message_takes_its_bytes_over_the_ring():
    assert collective_s("all_reduce", 10**9, 8, links()) == pytest.approx(2 * 7 / 8 * 10**9 * 1e-11, rel=0.01)
    assert collective_s("all_gather", 10**9, 8, links()) == pytest.approx(7 / 8 * 10**9 * 1e-11, rel=0.01)


def test_a_small_message_among_many_takes_a_tree():
    took = collective_s("all_reduce", 4, 1024, links())
    assert took == pytest.approx(2 * 10 * 1e-6, rel=0.01)


def test_beyond_one_machine_the_slower_link_counts():
    joined = links(between=SLOW, ranks_per_machine=8)
    assert collective_s("all_reduce", 10**9, 8, joined) == collective_s("all_reduce", 10**9, 8, links())
    assert collective_s("all_reduce", 10**9, 16, joined) > 9 * collective_s("all_reduce", 10**9, 16, links())


@given(
    operation=st.sampled_from(OPERATIONS),
    size=st.integers(1, 10**10),
    ranks=st.integers(2, 5000),
    per_machine=st.integers(1, 16),
)
def test_more_bytes_never_take_less_time(operation, size, ranks, per_machine):
    joined = links(between=SLOW, ranks_per_machine=per_machine)
    took = collective_s(operation, size, ranks, joined)
    assert 0 < took <= collective_s(operation, 2 * size, ranks, joined)


def test_one_rank_sends_nothing():
    assert collective_s("all_reduce", 10**9, 1, links()) == 0
