"""The roofline: laws that hold for every device and every piece of work."""

from __future__ import annotations

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

intensities = st.floats(min_value=1e-3, max_value=1e5)
peaks = st.floats(min_value=1e9, max_value=1e16)
bandwidths = st.floats(min_value=1e8, max_value=1e14)


@given(intensities, peaks, bandwidths)
def test_no_work_exceeds_either_roof(intensity, peak, bandwidth):
    roof = attainable(intensity, peak, bandwidth)
    assert 0 < roof <= peak
    assert roof <= intensity * bandwidth
    assert roof in (peak, intensity * bandwidth)


@given(intensities, st.floats(min_value=1, max_value=1e3), peaks, bandwidths)
def test_more_arithmetic_per_byte_never_lowers_the_roof(intensity, factor, peak, bandwidth):
    assert attainable(intensity * factor, peak, bandwidth) >= attainable(intensity, peak, bandwidth)


@given(peaks, bandwidths)
def test_both_roofs_meet_at_the_ridge(peak, bandwidth):
    assert ridge_point(peak, bandwidth) * bandwidth == pytest.approx(peak)


@given(intensities, peaks, bandwidths)
def test_what_limits_is_the_lower_roof(intensity, peak, bandwidth):
    limited_by_memory = attainable(intensity, peak, bandwidth) < peak * (1 - 1e-9)
    limited_by_compute = attainable(intensity, peak, bandwidth) < intensity * bandwidth * (1 - 1e-9)
    assert not limited_by_memory or bound(intensity, peak, bandwidth) is Bound.MEMORY
    assert not limited_by_compute or bound(intensity, peak, bandwidth) is Bound.COMPUTE


@given(intensities, peaks, bandwidths, st.floats(min_value=0, max_value=1))
def test_the_share_of_the_roof_is_never_below_the_mfu(intensity, peak, bandwidth, share):
    achieved = share * attainable(intensity, peak, bandwidth)
    of_roof = share_of_roof(achieved, intensity, peak, bandwidth)
    assert of_roof == pytest.approx(share)
    assert of_roof >= mfu(achieved, peak) * (1 - 1e-9)


@given(st.integers(min_value=1, max_value=10**6))
def test_an_elementwise_add_has_one_flop_per_twelve_bytes_whatever_its_length(n):
    assert arithmetic_intensity(n, 3 * 4 * n) == pytest.approx(1 / 12)


@pytest.mark.parametrize(("n", "expected"), [(128, 42.7), (1024, 341.3), (4096, 1365.3)])
def test_a_square_bfloat16_product_has_a_third_of_its_size(n, expected):
    assert arithmetic_intensity(2 * n**3, 3 * n * n * 2) == pytest.approx(expected, rel=1e-3)


def test_an_h200_needs_hundreds_of_flop_per_byte_to_be_busy():
    peak, bandwidth = 989.5e12, 4.8e12
    assert ridge_point(peak, bandwidth) == pytest.approx(206, rel=0.01)
    assert bound(1 / 12, peak, bandwidth) is Bound.MEMORY
    assert bound(1365, peak, bandwidth) is Bound.COMPUTE


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: arithmetic_intensity(10, 0), "arithmetic intensity: got 0 bytes"),
        (lambda: ridge_point(1e12, 0), "ridge point: got a bandwidth of 0"),
        (lambda: mfu(1e12, 0), "MFU: got a peak of 0"),
        (lambda: mfu(1e12, -1), "MFU: got a peak of -1"),
        (lambda: share_of_roof(1e12, 0.0, 1e12, 1e12), "roofline: got a roof of 0.0"),
    ],
)
def test_figures_that_no_device_has_are_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
