"""How far ratios vary from one pair of fresh processes to the next: what earlier confirmations on a machine say of the next one.

A few pairs may agree by luck, and then their own variance claims more than the next pair keeps. Confirmations of many recipes tell which
variances a machine has, and each variance is drawn towards these: empirical Bayes with a scaled inverse chi-square prior
(Smyth, Linear models and empirical Bayes methods, 2004, sections 3 and 6).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

LEAST_SPREAD = 0.01
"""Of ln ratios between processes, where so few pairs happen to agree better: where code and data lie in memory makes that much."""

FEWEST = 4
"""Below so many confirmations nothing is learned of them."""

_FLAT, _STEEP = 1e-2, 1e6
"""Degrees of freedom beyond which variances differ without bound, or not at all."""


class Spread(NamedTuple):
    """A variance of ln ratios between pairs, and the degrees of freedom that it is known with."""

    variance: float = 0.0
    degrees: float = 0.0

    def moderated(self, logs: Sequence[float]) -> Spread:
        """What is known once two or more pairs were seen, too.

        >>> Spread(0.04, 3.0).moderated([0.1, 0.1, 0.1, 0.1])
        Spread(variance=0.02005, degrees=6.0)
        """
        degrees = self.degrees + len(logs) - 1
        seen = (len(logs) - 1) * _variance(logs)
        return Spread((self.degrees * self.variance + seen) / degrees, degrees)


UNKNOWN = Spread()


def spread_of(confirmed: Sequence[Sequence[float]]) -> Spread:
    """What confirmations, each by the ln ratios of its pairs, say of the next one: by the moments of their ln variances.

    No more degrees of freedom than confirmations are claimed, so that a few that resemble each other do not decide alone.

    >>> spread_of([[0.1, 0.12]])
    Spread(variance=0.0, degrees=0.0)
    """
    known = [logs for logs in confirmed if len(logs) > 1]
    if len(known) < FEWEST:
        return UNKNOWN
    from scipy import optimize, special  # slow to import

    halves = np.array([(len(logs) - 1) / 2 for logs in known])
    centred = np.log([_variance(logs) for logs in known]) - special.digamma(halves) + np.log(halves)
    beyond = float(centred.var(ddof=1) - special.polygamma(1, halves).mean())

    def excess(half: float) -> float:
        return float(special.polygamma(1, half)) - beyond

    if beyond <= special.polygamma(1, _STEEP / 2):
        half = _STEEP / 2
    else:
        half = optimize.brentq(excess, _FLAT / 2, _STEEP / 2) if excess(_FLAT / 2) > 0 else _FLAT / 2
    variance = math.exp(float(centred.mean()) + float(special.digamma(half)) - math.log(half))
    return Spread(variance, min(2 * half, len(known)))


def _variance(logs: Sequence[float]) -> float:
    return max(float(np.var(logs, ddof=1)), LEAST_SPREAD**2)
