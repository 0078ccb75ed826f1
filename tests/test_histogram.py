"""Histograms of base 2^(1/32): exact where buckets end, within 1.1 % elsewhere, and merged without loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.histogram import PER_OCTAVE, Histogram, index_of, merge, upper_bound

TIMES = st.floats(1e-7, 1e3)


@given(TIMES)
def test_a_value_lies_within_its_bucket(value):
    index = index_of(value)
    assert upper_bound(index - 1) * (1 - 1e-12) <= value <= upper_bound(index) * (1 + 1e-12)


@pytest.mark.parametrize("power", range(-20, 8))
def test_a_power_of_two_ends_its_bucket(power):
    assert upper_bound(index_of(2.0**power)) == 2.0**power
    assert Histogram.of([2.0**power] * 100).counts == {power * PER_OCTAVE - 1: 100}


@given(st.lists(TIMES, min_size=1, max_size=300))
def test_many_and_few_values_fall_into_the_same_buckets(values):
    parts = merge(Histogram.of([value]) for value in values)
    whole = Histogram.of(values)
    assert parts.counts == whole.counts
    assert parts.count == whole.count == len(values)
    assert (whole.low, whole.high) == (min(values), max(values))
    assert math.isclose(parts.sum, whole.sum)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95, 0.99, 1.0])
def test_quantiles_are_those_of_numpy_within_the_width_of_a_bucket(share):
    values = np.random.default_rng(3).lognormal(-4, 0.7, 20_000)
    exact = np.quantile(values, share, method="lower")
    assert abs(Histogram.of(values).quantile(share) / exact - 1) <= 0.0110


def test_zeros_count_and_what_is_no_time_does_not():
    for copies in (1, 100):
        found = Histogram.of([0.0, 1.0, math.nan, -1.0, math.inf] * copies)
        assert (found.zeros, found.count, found.low, found.high) == (copies, 2 * copies, 0.0, 1.0)


def test_what_exceeds_a_bound_is_counted():
    found = Histogram.of([0.0, 0.3, 0.5, 0.6, 4.0])
    assert found.num_above(0.5) == 2
    assert Histogram().num_above(1.0) == 0


def test_an_empty_one_has_no_quantile():
    assert math.isnan(Histogram().quantile(0.5))
    assert merge([Histogram(), Histogram()]) == Histogram()
