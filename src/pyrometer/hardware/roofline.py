"""The roofline model: what a device can attain at a given ratio of arithmetic to memory traffic.

Source: Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", CACM 52(4), 2009. Rates are in FLOP/s and bytes/s, intensities in FLOP/byte.
"""

from __future__ import annotations


def attainable(intensity: float, peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """The roof in FLOP/s: `min(P, I·B)`.

    >>> attainable(1 / 12, 100e12, 1.2e12), attainable(1365, 100e12, 1.2e12)
    (100000000000.0, 100000000000000.0)
    """
    return min(peak_flop_per_s, intensity * bandwidth_bytes_per_s)
