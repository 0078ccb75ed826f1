"""Quantile intervals cover the truth, also when samples depend on each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from representative import every
from scipy import signal, stats

from pyrometer.bench.autocorrelation import autocorrelation_time, effective_size, lag_one
from pyrometer.bench.quantiles import QUANTILES, estimate_quantile, mean_interval


def autoregressive(n: int, phi: float, rng: np.random.Generator) -> np.ndarray:
    first = rng.normal()
    noise = rng.normal(0, np.sqrt(1 - phi**2), n)
    noise[0] = first
    return signal.lfilter([1], [1, -phi], noise)


@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("phi", every(3, [0.8, 0.5, 0.0]))
def test_coverage_of_the_true_quantile(quantile, phi):
    rng = np.random.default_rng(7)
    truth = stats.norm.ppf(quantile)
    hits = 0
    for _ in range(300):
        e = estimate_quantile(autoregressive(2000, phi, rng), quantile, 0.95)
        hits += (e.low_s is None or e.low_s <= truth) and (e.high_s is None or truth <= e.high_s)
    # 95 % nominal; 300 trials put 91.7 % three standard errors below.
    assert hits / 300 >= 0.917


def test_ignoring_autocorrelation_would_not_cover():
    """The contrast: independent-sample ranks on dependent samples cover far too rarely."""
    rng = np.random.default_rng(8)
    hits = 0
    for _ in range(200):
        x = np.sort(autoregressive(2000, 0.8, rng))
        low, high = stats.binom.ppf([0.025, 0.975], 2000, 0.5).astype(int)
        hits += x[low - 1] <= 0 <= x[high]
    assert hits / 200 < 0.8


def test_agrees_with_the_binomial_interval_for_independent_samples():
    x = np.random.default_rng(0).permutation(np.arange(1.0, 1001.0))
    e = estimate_quantile(x, 0.5, 0.95)
    assert abs(e.low_s - stats.binom.ppf(0.025, 1000, 0.5)) <= 25
    assert abs(e.high_s - stats.binom.ppf(0.975, 1000, 0.5)) <= 25


def test_a_tail_that_too_few_samples_cannot_bound_has_no_bound():
    e = estimate_quantile(np.random.default_rng(0).random(50), 0.99, 0.99)
    assert e.high_s is None
    assert e.low_s is not None


@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=60), st.sampled_from(QUANTILES))
def test_the_interval_always_holds_the_estimate(times, quantile):
    e = estimate_quantile(np.array(times), quantile, 0.99)
    assert e.low_s is None or e.low_s <= e.value_s * (1 + 1e-12)
    assert e.high_s is None or e.high_s >= e.value_s * (1 - 1e-12)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=200))
def test_effective_size_never_exceeds_the_number_of_samples(values):
    x = np.array(values)
    assert autocorrelation_time(x) >= 1.0
    assert effective_size(x) <= len(x)


def test_autocorrelation_time_of_an_autoregression():
    x = autoregressive(200_000, 0.8, np.random.default_rng(3))
    assert autocorrelation_time(x) == pytest.approx((1 + 0.8) / (1 - 0.8), rel=0.15)
    assert lag_one(x) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("phi", [0.0, 0.7])
def test_mean_interval_covers(phi):
    rng = np.random.default_rng(11)
    hits = sum(
        low <= 0 <= high
        for low, high in (mean_interval(autoregressive(1500, phi, rng), 0.95) for _ in range(300))
    )
    assert hits / 300 >= 0.91
