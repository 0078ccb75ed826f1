"""How much harm has to be ruled out before the next stage.

The last stages rule out the margin itself. Before them it is wider in proportion to the next share, so that the harm to all traffic
together that could be overlooked is the same at each stage: 5 % of the units may be twice as badly off as 10 % of them.
"""

from __future__ import annotations

from pyrometer.rollout.plan import Metric

FULL_FROM = 0.5
"""The next share from which on the margin itself has to be ruled out."""


def widening(next_share: float) -> float:
    """By how much margins are wider before a stage.

    >>> widening(0.05), widening(0.5), widening(1.0)
    (10.0, 1.0, 1.0)
    """
    return max(1.0, FULL_FROM / next_share)


def stage_margin(metric: Metric, next_share: float) -> float:
    """The ratio that has to be ruled out."""
    return metric.tolerate + (metric.margin - metric.tolerate) * widening(next_share)


def stage_allowed(metric: Metric, next_share: float) -> float | None:
    """The share of observations below which events are fine."""
    return None if metric.allowed is None else min(metric.allowed * widening(next_share), 0.5)
