"""Evidence on counts alone: its formula, its guarantee, and its intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import binom

from pyrometer.rollout.judging.ratio import FACTORS, Split, interval, log_e_above, log_e_below
from pyrometer.rollout.judging.share import log_e_mismatch, log_e_share_above, share_interval

splits = st.lists(
    st.builds(Split, st.floats(0.005, 0.9), st.integers(0, 400), st.integers(0, 400)), min_size=1, max_size=4
)


@given(splits, st.floats(0.2, 5.0))
def test_evidence_is_the_mean_of_likelihood_ratios(given_splits, theta0):
    def likelihood(theta):
        return sum(
            binom.logpmf(new, new + old, theta * w / (1 - w + theta * w)) for w, new, old in given_splits
        )

    expected = logsumexp([likelihood(f * theta0) - likelihood(theta0) for f in FACTORS]) - math.log(
        len(FACTORS)
    )
    assert log_e_above(given_splits, theta0) == pytest.approx(expected, abs=1e-6)


@given(splits)
def test_the_ends_of_an_interval_are_where_evidence_begins(given_splits):
    low, high = interval(given_splits, 0.01, 0.05)
    assert low < high
    if low > 2e-4:
        assert log_e_above(given_splits, low) == pytest.approx(math.log(100), abs=1e-3)
        assert log_e_above(given_splits, low * 0.99) > math.log(100)
    if high < 5e3:
        assert log_e_below(given_splits, high) == pytest.approx(math.log(20), abs=1e-3)


@given(splits)
def test_reports_add_up(given_splits):
    parts = [Split(w, new // 2, old // 2) for w, new, old in given_splits]
    parts += [Split(w, new - new // 2, old - old // 2) for w, new, old in given_splits]
    assert log_e_above(parts, 1.0) == pytest.approx(log_e_above(given_splits, 1.0), abs=1e-9)


def test_looking_after_every_event_does_not_raise_false_alarms():
    # 4,000 streams of 400 events under shares that rise, each looked at after every event.
    rng = np.random.default_rng(7)
    shares = np.repeat([0.01, 0.05, 0.2, 0.5], 100)
    new = rng.random((4000, 400)) < shares
    for theta0, log_e in (
        (1.0, _running(new, shares, FACTORS)),
        (1.0, _running(new, shares, [1 / f for f in FACTORS])),
    ):
        crossed = float((log_e.max(axis=1) >= math.log(20)).mean())
        assert crossed <= 0.05, (theta0, crossed)
    for peeked in [new.cumsum(axis=1)]:  # the same by a test that is not made for it
        n = np.arange(1, 401)
        z = (peeked - shares.cumsum()) / np.sqrt((shares * (1 - shares)).cumsum())
        assert float((np.abs(z[:, 20:]) > 1.96).any(axis=1).mean()) > 0.2, n[-1]


def _running(new, shares, factors):
    logs = []
    for factor in factors:
        given_old = -np.log1p((factor - 1) * shares)
        logs.append(np.where(new, np.log(factor) + given_old, given_old).cumsum(axis=1))
    return logsumexp(logs, axis=0) - math.log(len(factors))


def test_tripled_errors_are_found():
    rng, found = np.random.default_rng(3), 0
    for _ in range(200):
        arms = rng.random(300) < 3 * 0.2 / (0.8 + 3 * 0.2)
        found += log_e_above([Split(0.2, int(arms.sum()), int((~arms).sum()))], 1.0) > math.log(100)
    assert found >= 198


def test_an_interval_of_a_share_holds_it():
    rng, missed = np.random.default_rng(5), 0
    for _ in range(300):
        events = (rng.random(3000) < 0.02).cumsum()
        looks = [share_interval(n, int(events[n - 1]), 0.025, 0.025) for n in (100, 300, 1000, 3000)]
        missed += any(not low <= 0.02 <= high for low, high in looks)
    assert missed <= 15
    assert log_e_share_above(1000, 60, 0.02) > math.log(1e6)


def test_wrong_shares_are_told_and_right_ones_are_not():
    rng = np.random.default_rng(11)
    right = [(0.2, int(rng.binomial(20_000, 0.2)), 0) for _ in range(50)]
    assert max(log_e_mismatch([(w, new, 20_000 - new)]) for w, new, _ in right) < math.log(1000)
    assert log_e_mismatch([(0.2, 4400, 15_600)]) > math.log(1000)
    assert log_e_mismatch([(0.0, 0, 100), (1.0, 100, 0)]) == 0.0
