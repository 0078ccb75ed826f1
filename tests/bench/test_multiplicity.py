"""Many comparisons at once keep their error probability."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.bench.comparison.multiplicity import benjamini_hochberg, holm

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(p_values)
def test_adjusting_never_lowers_a_p_value_and_keeps_the_order(values):
    for adjust in (holm, benjamini_hochberg):
        adjusted = adjust(values)
        assert all(a >= p - 1e-12 for a, p in zip(adjusted, values, strict=True))
        assert max(adjusted) <= 1
        order = np.argsort(values)
        assert all(np.diff(np.array(adjusted)[order]) >= -1e-12)


@given(p_values)
def test_holm_lies_between_benjamini_hochberg_and_bonferroni(values):
    for mild, firm, p in zip(benjamini_hochberg(values), holm(values), values, strict=True):
        assert mild <= firm + 1e-12
        assert firm <= min(1.0, p * len(values)) + 1e-12


def test_twenty_identical_programs_rarely_give_any_false_claim():
    rng = np.random.default_rng(0)
    trials = [min(holm(rng.random(20).tolist())) <= 0.05 for _ in range(1000)]
    uncorrected = [rng.random(20).min() <= 0.05 for _ in range(1000)]
    assert np.mean(trials) <= 0.07
    assert np.mean(uncorrected) > 0.5


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_no_comparison_is_no_problem(adjust):
    assert adjust([]) == []
