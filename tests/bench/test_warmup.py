"""Where steady state begins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.bench.warmup import drift, steady_start

rng = np.random.default_rng(0)


@pytest.mark.parametrize("length", [1, 3, 8, 30])
def test_the_warm_up_is_cut_off_and_little_more(length):
    times = np.concatenate([np.linspace(5, 1.5, length), np.full(400, 1.0)])
    start = steady_start(times)
    assert start is not None
    assert times[start:].max() <= 1.6 or start >= length * 0.4
    assert start <= 4 * length + 15


def test_slow_outliers_do_not_delay_it():
    times = np.ones(200)
    times[rng.integers(0, 200, 30)] = 10.0
    assert steady_start(times) <= 2


def test_steps_that_keep_falling_never_become_steady():
    assert steady_start(1 / np.arange(1, 300) ** 0.7) is None


def test_few_slow_steps_can_be_steady():
    assert steady_start(np.array([1.0, 1.01, 0.99, 1.0])) == 0
    assert steady_start(np.array([4.0, 3.0, 2.0, 1.0])) is None


def test_noise_is_no_drift_but_a_ramp_is():
    assert drift(np.exp(rng.normal(0, 0.3, 900))) == 0.0
    assert drift(np.linspace(2, 1, 900)) == pytest.approx(-0.45, abs=0.1)


@given(st.lists(st.floats(1e-6, 1e3), max_size=120))
def test_any_series_has_an_answer(times):
    start = steady_start(np.array(times))
    assert start is None or 0 <= start < len(times)


@pytest.mark.parametrize("n", [40, 150, 1000])
def test_a_busy_machine_is_not_taken_for_a_warm_up(n):
    steady_starts = [
        steady_start(np.exp(np.random.default_rng(seed).normal(0, 0.4, n))) for seed in range(200)
    ]
    assert sum(start is None for start in steady_starts) <= 4
    assert np.median([start for start in steady_starts if start is not None]) <= 2
