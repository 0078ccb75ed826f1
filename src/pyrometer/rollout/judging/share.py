"""How often something happens, by itself: an e-process on independent observations; and whether versions got their shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from scipy.special import betaln

from pyrometer.rollout.judging.ratio import FACTORS, log_mean_exp

_STEPS = 40
_CONCENTRATION = 1000.0
"""Of the prior around the promised share: tells 1 % apart after some ten thousand observations."""


def log_e_share_above(num: int, events: int, limit: float) -> float:
    """Logarithm of the evidence that more than a share `limit` of the observations are events."""
    return _log_e(num, events, limit, [limit * f for f in FACTORS if limit * f < 1] or [(1 + limit) / 2])


def log_e_share_below(num: int, events: int, limit: float) -> float:
    """Logarithm of the evidence that less than a share `limit` are."""
    return _log_e(num, events, limit, [*(limit / f for f in FACTORS), limit / 100])


def share_interval(num: int, events: int, alpha_low: float, alpha_high: float) -> tuple[float, float]:
    """The shares that are not refuted."""
    low = _edge(lambda share: log_e_share_above(num, events, share) >= -math.log(alpha_low), 1e-9, 0.0)
    high = _edge(lambda share: log_e_share_below(num, events, share) >= -math.log(alpha_high), 1 - 1e-9, 1.0)
    return low, high


def log_e_mismatch(observed: Iterable[tuple[float, int, int]]) -> float:
    """Logarithm of the evidence that observations did not fall to the versions in the promised shares.

    Args:
        observed: per epoch, the share of the new version, and the observations of the new and the old one.
    """
    total = 0.0
    for share, new, old in observed:
        if 0 < share < 1 and new + old:
            a, b = share * _CONCENTRATION, (1 - share) * _CONCENTRATION
            likely = float(betaln(a + new, b + old) - betaln(a, b))
            total += likely - new * math.log(share) - old * math.log1p(-share)
    return total


def _log_e(num: int, events: int, limit: float, bets: list[float]) -> float:
    return log_mean_exp([
        events * math.log(bet / limit) + (num - events) * (math.log1p(-bet) - math.log1p(-limit)) for bet in bets
    ])  # fmt: skip


def _edge(refuted: Callable[[float], bool], start: float, unknown: float) -> float:
    if not refuted(start):
        return unknown
    outside, inside = start, 1 - start
    for _ in range(_STEPS):
        middle = (
            math.sqrt(outside * inside) if min(outside, inside) < 0.1 else (outside + inside) / 2
        )  # small shares to the digit
        outside, inside = (middle, inside) if refuted(middle) else (outside, middle)
    return outside
