"""How much larger a quantity is under the new version: the mean of its logarithm, by an asymptotic confidence sequence.

The difference is taken within each epoch and averaged over epochs with the weight of its information. Pooled means would not do: the
new version gets most of its observations late, and a load that changed by then would count as its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from pyrometer.bench.comparison.always_valid import log_evidence, width
from pyrometer.rollout.counts import Level

LEAST = 100
"""Observations of the new version before its interval means anything."""


class Difference(NamedTuple):
    """Of the means of logarithms."""

    mean: float
    error: float
    """One standard error."""
    num: int
    """Observations of both."""

    def bounds(self, alpha_low: float, alpha_high: float) -> tuple[float, float]:
        """The differences that are not refuted, each end by itself at its alpha."""
        low = self.mean - self.error * width(self.num, 2 * alpha_low)
        return low, self.mean + self.error * width(self.num, 2 * alpha_high)

    def log_e_above(self, limit: float, alpha: float) -> float:
        """Logarithm of the evidence for a difference above a limit, one-sided."""
        deviation = (self.mean - limit) / self.error
        one_sided = math.erfc(-deviation / math.sqrt(2))  # 2 Φ
        return log_evidence(deviation, self.num, 2 * alpha) + math.log(max(one_sided, 1e-300))

    @property
    def p_value(self) -> float:
        """Of Welch's test, which holds only for who looks once."""
        return math.erfc(abs(self.mean / self.error) / math.sqrt(2))


def difference(epochs: Sequence[tuple[Level, Level]]) -> Difference | None:
    """New against old over several epochs; nothing before there are enough observations."""
    counted = [(new, old) for new, old in epochs if new.num and old.num]
    spreads = [_pooled([pair[side] for pair in counted]) for side in (0, 1)]
    if sum(new.num for new, _ in counted) < LEAST or None in spreads:
        return None
    new_spread, old_spread = (max(spread or 0.0, 1e-12) for spread in spreads)
    information = [1 / (new_spread / new.num + old_spread / old.num) for new, old in counted]
    total = sum(information)
    mean = sum(one * (new.mean - old.mean) for one, (new, old) in zip(information, counted, strict=True))
    return Difference(mean / total, 1 / math.sqrt(total), sum(new.num + old.num for new, old in counted))


def _pooled(levels: Sequence[Level]) -> float | None:
    """Variance within epochs: that of a single epoch with few observations may be tiny by chance."""
    degrees = sum(level.num - 1 for level in levels)
    return sum((level.num - 1) * level.variance for level in levels) / degrees if degrees > 0 else None
