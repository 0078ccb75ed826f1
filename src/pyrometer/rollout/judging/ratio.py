"""How much more often something happens under the new version: an e-process on counts alone (Lindon and Malek, 2022).

Chance gives each observation to the new version with probability w. Given that the event happened, it happened there with
probability θw / (1 − w + θw), where θ is the ratio of the rates; load, hour and input are the same for both and fall out. Against
θ ≤ theta0 the likelihood ratios of several larger θ are averaged; under the hypothesis the average stays below 1/alpha forever with
probability 1 − alpha (Ville), whenever one looks and stops. The ends of the interval are the theta0 that are just not refuted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
"""Times theta0: what is bet on, in equal parts; below theta0 their inverses."""
_FARTHEST = 1e4
_STEPS = 24
"""Of a bisection over the logarithm: the end is found to a millionth."""


class Split(NamedTuple):
    """Events under one share: of the new version, and of the old."""

    share: float
    new: int
    old: int


def log_e_above(splits: Sequence[Split], ratio: float) -> float:
    """Logarithm of the evidence that the events are more than `ratio` times as frequent under the new version.

    >>> round(math.exp(log_e_above([Split(0.5, 30, 10)], 1.0)))
    57
    """
    return _log_e(splits, ratio, FACTORS)


def log_e_below(splits: Sequence[Split], ratio: float) -> float:
    """Logarithm of the evidence that they are less than `ratio` times as frequent."""
    return _log_e(splits, ratio, [1 / factor for factor in FACTORS])


def interval(splits: Sequence[Split], alpha_low: float, alpha_high: float) -> tuple[float, float]:
    """The ratios that are not refuted, each end at its own alpha; 0 and infinity where nothing is known."""
    low = _farthest(lambda ratio: log_e_above(splits, ratio) >= -math.log(alpha_low), 1 / _FARTHEST, 0.0)
    high = _farthest(lambda ratio: log_e_below(splits, ratio) >= -math.log(alpha_high), _FARTHEST, math.inf)
    return low, high


def _log_e(splits: Sequence[Split], ratio: float, factors: Sequence[float]) -> float:
    terms = []
    for factor in factors:
        total = 0.0
        for share, new, old in splits:
            # (1 − w + fθw) / (1 − w + θw), written so that it is exact for small w
            more = math.log1p((factor - 1) * ratio * share / (1 - share + ratio * share))
            total += new * math.log(factor) - (new + old) * more
        terms.append(total)
    return log_mean_exp(terms)


def _farthest(refuted: Callable[[float], bool], start: float, unknown: float) -> float:
    """Between a ratio that is refuted and one that is not, where the answer changes; it does so once."""
    if not refuted(start):
        return unknown
    inside, outside = math.log(1 / start), math.log(start)
    for _ in range(_STEPS):
        middle = (inside + outside) / 2
        if refuted(math.exp(middle)):
            outside = middle
        else:
            inside = middle
    return math.exp(outside)


def log_mean_exp(terms: Sequence[float]) -> float:
    """Logarithm of the mean of exponentials."""
    largest = max(terms)
    return largest + math.log(sum(math.exp(term - largest) for term in terms) / len(terms))
