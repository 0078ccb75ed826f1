"""The numbers agree with independent implementations."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pyrometer.bench.comparison.pairing import hodges_lehmann, merged, resolution, robust_sd, signed_rank_p
from pyrometer.bench.comparison.textbook import cohen_word, reference_tests

rng = np.random.default_rng(0)


@given(st.lists(st.floats(-1, 1), min_size=8, max_size=25))
def test_hodges_lehmann_is_the_median_of_all_pairwise_means(values):
    slow = np.median([(a + b) / 2 for a, b in itertools.combinations_with_replacement(values, 2)])
    estimate, low, high = hodges_lehmann(np.array(values), 0.05)
    assert estimate == pytest.approx(slow, abs=1e-12)
    assert low <= estimate <= high


@pytest.mark.parametrize("n", [20, 40, 80])
def test_the_interval_excludes_zero_when_the_signed_rank_test_rejects(n):
    """Interval and test are two sides of one procedure; they may differ only right at the threshold."""
    for _ in range(100):
        blocks = rng.normal(0.02, 0.05, n)
        _, low, high = hodges_lehmann(blocks, 0.05)
        p = signed_rank_p(blocks)
        if p < 0.045:
            assert low > 0 or high < 0
        if p > 0.055:
            assert low <= 0 <= high


def test_reference_tests_are_scipys():
    a, b = rng.normal(1, 0.1, 50), rng.normal(1.1, 0.2, 60)
    tests = reference_tests(a, b)
    assert tests.welch_p == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue)
    assert tests.mann_whitney_p == pytest.approx(stats.mannwhitneyu(a, b).pvalue)
    assert tests.welch_t > 0, "positive when the candidate is slower"
    assert tests.cohen_size == cohen_word(tests.cohen_d)


@pytest.mark.parametrize(
    ("d", "word"), [(0.1, "negligible"), (0.2, "small"), (-0.5, "medium"), (0.8, "large"), (9, "large")]
)
def test_words_for_effect_sizes(d, word):
    assert cohen_word(d) == word


def test_constant_series_have_no_reference_statistics():
    assert reference_tests(np.ones(5), np.ones(5)).welch_p is None


def test_merging_removes_correlation_and_leaves_independent_blocks_alone():
    independent = rng.normal(size=200)
    assert len(merged(independent)) == 200
    walk = np.repeat(rng.normal(size=50), 4) + rng.normal(0, 0.01, 200)
    assert len(merged(walk)) <= 100


def test_four_times_the_blocks_resolve_half_the_difference():
    blocks = rng.normal(0, 0.01, 400)
    assert robust_sd(blocks) == pytest.approx(0.01, rel=0.15)
    assert resolution(blocks, 100) / resolution(blocks, 400) == pytest.approx(2, rel=0.05)
