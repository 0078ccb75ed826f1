"""The roofline model: what a device can attain at a given ratio of arithmetic to memory traffic.

Source: Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", CACM 52(4), 2009. Rates are in FLOP/s and bytes/s, intensities in FLOP/byte.
"""

from __future__ import annotations

import enum

from pyrometer.errors import InputError


class Bound(enum.StrEnum):
    """What limits a piece of work on a device."""

    MEMORY = "memory"
    COMPUTE = "compute"


def arithmetic_intensity(flop: float, num_bytes: float) -> float:
    """FLOP per byte moved.

    Adding two float32 vectors does one FLOP for three numbers of four bytes; a square matrix product does `2n³` for
    three matrices:

    >>> arithmetic_intensity(1, 3 * 4) == 1 / 12
    True
    >>> n = 4096
    >>> round(arithmetic_intensity(2 * n**3, 3 * n**2 * 2))
    1365

    Raises:
        InputError: no bytes are moved.
    """
    if num_bytes <= 0:
        raise InputError(f"arithmetic intensity: got {num_bytes} bytes; at least one must be moved")
    return flop / num_bytes


def attainable(intensity: float, peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """The roof in FLOP/s: `min(P, I·B)`.

    >>> attainable(1 / 12, 100e12, 1.2e12), attainable(1365, 100e12, 1.2e12)
    (100000000000.0, 100000000000000.0)
    """
    return min(peak_flop_per_s, intensity * bandwidth_bytes_per_s)


def ridge_point(peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """The intensity at which memory and arithmetic take equally long: `P / B`.

    >>> ridge_point(100e12, 2e12)
    50.0

    Raises:
        InputError: the bandwidth is not positive.
    """
    if bandwidth_bytes_per_s <= 0:
        raise InputError(
            f"ridge point: got a bandwidth of {bandwidth_bytes_per_s} bytes/s; it must be positive"
        )
    return peak_flop_per_s / bandwidth_bytes_per_s


def bound(intensity: float, peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> Bound:
    """Which roof is the lower one at this intensity.

    >>> bound(1 / 12, 100e12, 2e12).value, bound(1365, 100e12, 2e12).value
    ('memory', 'compute')
    """
    return Bound.MEMORY if intensity < ridge_point(peak_flop_per_s, bandwidth_bytes_per_s) else Bound.COMPUTE


def share_of_roof(
    achieved_flop_per_s: float, intensity: float, peak_flop_per_s: float, bandwidth_bytes_per_s: float
) -> float:
    """What was achieved over what is attainable at this intensity; 1 is as fast as the device allows.

    >>> share_of_roof(75e9, 1 / 12, 100e12, 1.2e12)
    0.75

    Raises:
        InputError: nothing is attainable.
    """
    roof = attainable(intensity, peak_flop_per_s, bandwidth_bytes_per_s)
    if roof <= 0:
        raise InputError(
            f"roofline: got a roof of {roof} FLOP/s; intensity, peak and bandwidth must be positive"
        )
    return achieved_flop_per_s / roof


def mfu(achieved_flop_per_s: float, peak_flop_per_s: float) -> float:
    """Model FLOP/s utilisation (MFU): the arithmetic that the model needs per second over the peak.

    >>> mfu(45e12, 100e12)
    0.45

    Raises:
        InputError: the peak is not positive.
    """
    if peak_flop_per_s <= 0:
        raise InputError(f"MFU: got a peak of {peak_flop_per_s} FLOP/s; it must be positive")
    return achieved_flop_per_s / peak_flop_per_s
