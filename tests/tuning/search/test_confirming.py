"""The interval of a confirmation holds the ratio of another pair of processes."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.tuning.search import confirming
from pyrometer.tuning.search.confirming import expected_next
from pyrometer.tuning.trials.gate import Numerics


@pytest.mark.parametrize("spread", [0.002, 0.02, 0.1])
def test_another_pair_is_within_the_interval_as_often_as_is_said(spread):
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(2000):
        *known, following = np.exp(rng.normal(np.log(0.5), spread, 5))
        _, low, high = expected_next(known)
        held += low <= following <= high
    assert held / 2000 > 0.935


def test_a_single_pair_bounds_nothing():
    assert expected_next([0.5])[1:] == (0.0, float("inf"))


def test_numerics_are_checked_before_the_timing_trains_on(monkeypatch):
    done = []

    class Recorded:
        def compare(self, *_args, **_kwargs):
            done.append("compare")
            return Verdict(outcome="faster", ratio=0.5, ci_low=0.4, ci_high=0.6, confidence=0.99, margin=0.05, smallest_effect=0.02, num_blocks=12, elapsed_s=1.0)  # fmt: skip

        def check(self, _side):
            done.append("check")
            return Numerics()

        def peak_bytes(self, _side):
            return 1

    monkeypatch.setattr(confirming, "opened", lambda *_args, **_kwargs: contextlib.nullcontext())
    confirming.confirm(Recorded(), (), num_pairs=2, pair_s=1.0, progress=lambda *_: None)
    assert done == ["compare", "check", "compare"]
