"""The roofline's shape, over all intensities."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pyrometer.hardware.roofline import attainable

peaks = st.floats(1e6, 1e16)
bandwidths = st.floats(1e6, 1e14)
intensities = st.floats(1e-6, 1e6)


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
