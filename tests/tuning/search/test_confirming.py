"""The interval of a confirmation holds the ratio of another pair of processes."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec.structs import replace

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.errors import UserProgramError
from pyrometer.tuning.search import confirming
from pyrometer.tuning.search.confirming import Pairs, confirm, expected_next


@pytest.mark.parametrize("noise", [0.02, 0.1])
@pytest.mark.parametrize("spread", [0.002, 0.03])
def test_noise_of_pairs_is_no_part_of_the_next_ratio_and_claims_nothing_by_itself(spread, noise):
    rng = np.random.default_rng(7)
    held = claimed = 0
    reach = {True: [], False: []}
    for _ in range(2000):
        *true, following = rng.normal(0, spread, 5)
        known = np.exp(true + rng.normal(0, noise, 4))
        for told in (True, False):
            _, low, high = expected_next(known, noise**2 if told else 0.0)
            reach[told].append(np.log(high / low))
            if told:
                held += low <= np.exp(following) <= high
                claimed += high < 1
    assert held / 2000 > 0.93
    assert claimed / 2000 < 0.01
    assert np.median(reach[True]) < np.median(reach[False])


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


class Noting:
    """Notes what it is asked for."""

    step_s = 0.01
    num_blocks = 12

    def __init__(self):
        self.asked = []

    def open(self, configuration, *, fresh_seed=None):
        opened = SimpleNamespace(not_applied=None)
        return SimpleNamespace(configuration=configuration, opened=opened, close=lambda: None)

    def check(self, side):
        self.asked.append("check")

    def compare(self, best, candidate, budget_s, rule, seed=0):
        self.asked.append("compare")
        figures = {
            "confidence": 0.95,
            "margin": 0.05,
            "smallest_effect": 0.02,
            "num_blocks": 8,
            "elapsed_s": 1.0,
        }
        return Verdict(outcome="faster", ratio=0.5, ci_low=0.49, ci_high=0.51, **figures)

    def peak_bytes(self, side):
        self.asked.append("peak")


def test_numbers_are_checked_before_timed_steps_train_the_model_on():
    laboratory = Noting()
    confirm(laboratory, (), Pairs(2, 1.0), lambda *_: None)
    assert laboratory.asked == ["check", "compare", "peak", "compare"]


def test_an_interruption_ends_what_is_being_opened_and_closes_what_is_open(monkeypatch):
    laboratory, abandoned, closed = Noting(), threading.Event(), []

    def open_side(configuration, *, fresh_seed=None):
        if configuration:
            assert abandoned.wait(60)
            raise UserProgramError("it ended")
        side = Noting.open(laboratory, configuration)
        side.close = lambda: closed.append("baseline")
        return side

    def interrupted(started):
        started[0].result()
        raise KeyboardInterrupt

    laboratory.open, laboratory.abandon = open_side, abandoned.set
    monkeypatch.setattr(confirming, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        confirm(laboratory, ("a lever",), Pairs(2, 1.0), lambda *_: None)
    assert closed == ["baseline"]


class Varying(Noting):
    """Finds another ratio in each pair of processes."""

    def __init__(self, *ratios):
        super().__init__()
        self.ratios = iter(ratios)

    def compare(self, best, candidate, budget_s, rule, seed=0):
        verdict = super().compare(best, candidate, budget_s, rule, seed)
        return replace(verdict, ratio=next(self.ratios))


@pytest.mark.parametrize(
    ("ratios", "end_s", "num_pairs"),
    [
        ((0.5, 0.5, 0.5), 25.0, 2),
        ((0.9, 0.8, 0.9), 25.0, 3),
        ((0.9, 0.8, 0.9), 15.0, 2),
        ((0.5, 0.5, 0.5, 0.5, 0.5), 1e6, 4),
        ((0.9, 1.1) * 5, 1e6, 8),
    ],
    ids=["decided", "one more ends late", "late already", "time for all", "twice as many"],
)
def test_once_the_time_is_over_at_most_one_more_pair_is_begun(ratios, end_s, num_pairs):
    laboratory, clock = Varying(*ratios), [0.0]

    def open_slowly(configuration, *, fresh_seed=None):
        clock[0] += 5.0
        return Noting.open(laboratory, configuration)

    laboratory.open = open_slowly
    verdict, _, _ = confirm(laboratory, (), Pairs(4, 1.0, end_s, lambda: clock[0]), lambda *_: None)
    assert verdict.num_processes == num_pairs
