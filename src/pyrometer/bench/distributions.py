"""Student's and the binomial distribution, by the incomplete beta function: importing SciPy costs more than many a measurement.

Continued fraction: Press et al., Numerical Recipes, 3rd edition, section 6.4.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_TINY = 1e-300
_CLOSE = 1e-15
_MOST_TERMS = 100_000
_MOST_STEPS = 200


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function; `a` and `b` above 0, `x` between 0 and 1.

    >>> round(incomplete_beta(2.0, 3.0, 0.4), 6)
    0.5248
    """
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Lentz's evaluation; its terms fall off fast left of the mean."""
    c, d = 1.0, 1.0 / _apart(1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _apart(1.0 + term * d)
            c = _apart(1.0 + term / c)
            value *= d * c
        if abs(d * c - 1.0) < _CLOSE:
            break
    return value


def _apart(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def binomial_cdf(successes: float, trials: float, chance: float) -> float:
    """P(X ≤ successes); continuous in both numbers, so that a fractional number of trials needs no rounding.

    >>> round(binomial_cdf(2, 5, 0.5), 6), binomial_cdf(5, 5, 0.5)
    (0.5, 1.0)
    """
    return 1.0 if successes >= trials else incomplete_beta(trials - successes, successes + 1, 1 - chance)


def student_tail(value: float, freedom: float) -> float:
    """P(|T| ≥ |value|) of Student's distribution: the p of a two-sided test.

    >>> round(student_tail(2.0, 10), 4)
    0.0734
    """
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + value * value))


@lru_cache(maxsize=1024)
def student_quantile(probability: float, freedom: float) -> float:
    """Quantile of Student's distribution, for probabilities from 0.5 on.

    >>> round(student_quantile(0.975, 9), 4), round(student_quantile(0.975, 1), 3)
    (2.2622, 12.706)
    """
    tail = 2 * (1 - probability)
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    # The normal quantile lies below, and from there Newton's steps come near without passing it: the density falls.
    value = NormalDist().inv_cdf(probability) if probability > 0.5 else 0.0
    for _ in range(_MOST_STEPS):
        density = math.exp(log_scale - (freedom + 1) / 2 * math.log1p(value * value / freedom))
        step = (student_tail(value, freedom) - tail) / (2 * density)
        value += step
        if abs(step) <= 1e-13 * abs(value):
            break
    return value
