"""Every detector: importing this registers them."""

from __future__ import annotations

from pyrometer.monitor.detecting import (
    absence,
    adaptive,
    cusum,
    error_rate,
    leak,
    limit,
    numerics,
    output_shift,
    sigma,
    tail,
)
from pyrometer.monitor.detecting.detector import detector_names

MODULES = (absence, adaptive, cusum, error_rate, leak, limit, numerics, output_shift, sigma, tail)


def names() -> list[str]:
    """The names under which detectors can be made."""
    return detector_names()
