"""The roofline's shape, over all intensities."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyrometer.errors import InputError
from pyrometer.hardware.roofline import (
    Bound,
    arithmetic_intensity,
    attainable,
    bound,
    mfu,
    ridge_point,
    share_of_roof,
)

peaks = st.floats(1e6, 1e16)
bandwidths = st.floats(1e6, 1e14)
intensities = st.floats(1e-6, 1e6)


def test_the_examples_of_the_guides():
    assert arithmetic_intensity(1, 12) == 1 / 12
    n = 4096
    assert round(arithmetic_intensity(2 * n**3, 3 * n * n * 2)) == 1365


@given(intensities, peaks, bandwidths)
def test_neither_roof_is_exceeded_and_one_is_reached(intensity, peak, bandwidth):
    roof = attainable(intensity, peak, bandwidth)
    assert roof <= peak
    assert roof <= intensity * bandwidth
    assert roof in {peak, intensity * bandwidth}


@given(intensities, intensities, peaks, bandwidths)
def test_more_intensity_never_lowers_the_roof(a, b, peak, bandwidth):
    low, high = sorted((a, b))
    assert attainable(low, peak, bandwidth) <= attainable(high, peak, bandwidth)


@given(intensities, peaks, bandwidths)
def test_the_ridge_parts_the_bounds(intensity, peak, bandwidth):
    ridge = ridge_point(peak, bandwidth)
    assert math.isclose(attainable(ridge, peak, bandwidth), peak, rel_tol=1e-9)
    assert bound(intensity, peak, bandwidth) is (Bound.MEMORY if intensity < ridge else Bound.COMPUTE)


@given(st.floats(0, 1), intensities, peaks, bandwidths)
def test_nothing_below_the_roof_has_a_utilisation_above_one(share, intensity, peak, bandwidth):
    assert 0 <= mfu(share * attainable(intensity, peak, bandwidth), peak) <= 1


@given(st.floats(0, 1), intensities, peaks, bandwidths)
def test_the_share_of_the_roof_is_what_was_achieved_of_it_and_never_below_the_mfu(
    share, intensity, peak, bandwidth
):
    achieved = share * attainable(intensity, peak, bandwidth)
    of_roof = share_of_roof(achieved, intensity, peak, bandwidth)
    assert of_roof == pytest.approx(share)
    assert of_roof >= mfu(achieved, peak)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: arithmetic_intensity(1, 0), "at least one"),
        (lambda: arithmetic_intensity(1, -4), "-4 bytes"),
        (lambda: ridge_point(1e12, 0), "bandwidth of 0"),
        (lambda: bound(1, 1e12, -1), "bandwidth of -1"),
        (lambda: mfu(1e12, 0), "peak of 0"),
        (lambda: share_of_roof(1e12, 0.0, 1e12, 1e12), "roof of 0.0"),
    ],
)
def test_bad_figures(call, message):
    with pytest.raises(InputError, match=message):
        call()
