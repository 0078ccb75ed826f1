"""What a pair spends on each of its benchmarks, and in what surroundings its processes start."""

from __future__ import annotations

import pytest

from pyrometer.errors import UserProgramError
from pyrometer.guard.pairs import (
    LEAST_BLOCKS_S,
    LEAST_OF_ALL_S,
    MOST_BLOCKS_S,
    MOST_OF_ALL_S,
    PairRun,
    blocks_span,
)


@pytest.mark.parametrize("num_benchmarks", [1, 2, 5, 20])
def test_a_pair_shares_its_time_among_the_benchmarks_that_are_open(num_benchmarks):
    least_s, most_s = blocks_span(num_benchmarks)
    assert least_s < most_s
    assert num_benchmarks * least_s == pytest.approx(min(num_benchmarks * LEAST_BLOCKS_S, LEAST_OF_ALL_S))
    assert num_benchmarks * most_s == pytest.approx(min(num_benchmarks * MOST_BLOCKS_S, MOST_OF_ALL_S))


class Side:
    """Notes how its processes are started; none of them lives."""

    def __init__(self):
        self.started = []

    def start(self, _log, caches, hash_seed):
        self.started.append((len(str(caches)), hash_seed))
        return self

    def ask(self, *_request, timeout_s):
        raise UserProgramError(f"did not start within {timeout_s:.0f} s")

    def close(self):
        """There is no process."""


def test_both_sides_of_a_pair_start_alike_and_strings_hash_otherwise_in_the_next(tmp_path):
    side = Side()
    for seed in (3, 4):
        run = PairRun(
            {"base": side, "head": side}, {"base": None, "head": None}, ["b"], frozenset({"b"}), {}, tmp_path, seed,
            lambda _share, _name: None,
        )  # fmt: skip
        assert [missed.failed for missed in run.run().missed] == [True]
    lengths, seeds = zip(*side.started, strict=True)
    assert len(set(lengths)) == 1
    assert seeds == (3, 3, 3, 4, 4, 4)
