"""Intervals for a difference that may be looked at after every observation: asymptotic confidence sequences.

A normal mixture (Robbins) with the scale of Waudby-Smith et al. (2021), as used by GrowthBook: narrowest at `TUNED_FOR` observations,
valid at all times once there are enough for the central limit theorem.
"""

from __future__ import annotations

import math

TUNED_FOR = 5000.0
"""Observations at which the interval is narrowest for its confidence."""


def width(count: float, alpha: float, tuned_for: float = TUNED_FOR) -> float:
    """Standard errors on either side of a difference that an interval needs to hold at all times.

    >>> 3.0 < width(5000, 0.01) < 4.0
    True
    """
    rho2 = _rho2(alpha, tuned_for)
    spread = count * rho2 + 1
    return math.sqrt(2 * spread / (count * rho2) * math.log(math.sqrt(spread) / alpha))


def log_evidence(deviation: float, count: float, alpha: float, tuned_for: float = TUNED_FOR) -> float:
    """Logarithm of the e-value against a difference that lies so many standard errors away; the interval is where it stays small.

    >>> round(log_evidence(width(700, 0.01), 700, 0.01), 9) == round(math.log(100), 9)
    True
    """
    spread = count * _rho2(alpha, tuned_for) + 1
    return deviation**2 * (spread - 1) / (2 * spread) - math.log(spread) / 2


def _rho2(alpha: float, tuned_for: float) -> float:
    return (-2 * math.log(alpha) + math.log(-2 * math.log(alpha) + 1)) / tuned_for
