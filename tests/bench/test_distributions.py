"""Distributions of our own, against SciPy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from pyrometer.bench.distributions import binomial_cdf, incomplete_beta, student_quantile, student_tail

SHAPES = st.floats(0.01, 1e5)


@given(SHAPES, SHAPES, st.floats(0, 1))
def test_the_incomplete_beta_function_is_scipys(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x) == pytest.approx(float(special.betainc(a, b, x)), rel=1e-7, abs=1e-9)


@given(st.integers(1, 5000), st.floats(0, 1), st.floats(0.01, 0.99))
def test_the_binomial_distribution_is_scipys(trials: int, part: float, chance: float) -> None:
    successes = round(part * trials)
    assert binomial_cdf(successes, trials, chance) == pytest.approx(
        float(stats.binom.cdf(successes, trials, chance)), abs=1e-9
    )


@given(st.floats(0.5, 0.9999), st.floats(1, 1e5))
def test_students_quantile_is_scipys(probability: float, freedom: float) -> None:
    quantile = student_quantile(probability, freedom)
    assert quantile == pytest.approx(float(stats.t.ppf(probability, freedom)), rel=1e-6, abs=1e-7)
    assert student_tail(quantile, freedom) == pytest.approx(2 * (1 - probability), abs=1e-8)
