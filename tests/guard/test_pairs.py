"""What a pair spends on each of its benchmarks."""

from __future__ import annotations

import pytest

from pyrometer.guard.pairs import LEAST_BLOCKS_S, LEAST_OF_ALL_S, MOST_BLOCKS_S, MOST_OF_ALL_S, blocks_span


@pytest.mark.parametrize("num_benchmarks", [1, 2, 5, 20])
def test_a_pair_shares_its_time_among_the_benchmarks_that_are_open(num_benchmarks):
    least_s, most_s = blocks_span(num_benchmarks)
    assert least_s < most_s
    assert num_benchmarks * least_s == pytest.approx(min(num_benchmarks * LEAST_BLOCKS_S, LEAST_OF_ALL_S))
    assert num_benchmarks * most_s == pytest.approx(min(num_benchmarks * MOST_BLOCKS_S, MOST_OF_ALL_S))
