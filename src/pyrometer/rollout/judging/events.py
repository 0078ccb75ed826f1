"""The tests of what happens or does not: events, exceedances of thresholds, and outputs that differ."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyrometer.rollout.counts import COMPARED, DISAGREED, Counts, add_counts, num_above
from pyrometer.rollout.judging import ratio, share
from pyrometer.rollout.judging.judgement import MOST_LOG, MetricTest
from pyrometer.rollout.judging.margins import stage_allowed, stage_margin
from pyrometer.rollout.observed import Epoch
from pyrometer.rollout.plan import Metric, Plan


def events_test(
    plan: Plan, metric: Metric, epochs: Sequence[Epoch], next_share: float, alpha: float
) -> MetricTest:
    """How often something happens under the new version, against the old."""
    sides = [(epoch, num_of(metric, epoch.new), num_of(metric, epoch.old)) for epoch in epochs]
    # What is worse when it is rarer is tested with the versions in each other's place.
    less = metric.worse == "less"
    splits = [
        ratio.Split(1 - epoch.share, old, new) if less else ratio.Split(epoch.share, new, old)
        for epoch, new, old in sides
        if 0 < epoch.share < 1
    ]
    margin = stage_margin(metric, next_share)
    num_new, num_old = (add_counts(getattr(epoch, arm) for epoch in epochs).num for arm in ("new", "old"))
    events_new, events_old = sum(new for _, new, _ in sides), sum(old for _, _, old in sides)
    low, high = ratio.interval(splits, alpha, plan.alpha) if splits else (0.0, math.inf)
    log_e = ratio.log_e_above(splits, metric.tolerate) if splits else 0.0
    shares = (events_new / num_new if num_new else None, events_old / num_old if num_old else None)
    rates = _rate_ratio(splits)
    fine = _is_rare(metric, num_new, events_new, stage_allowed(metric, next_share), plan.alpha)
    return MetricTest(
        metric=metric.name,
        estimate=_turned(rates, less=less),
        ci_low=_turned(high, less=True) if less else low,
        ci_high=_turned(low, less=True) if less else _finite(high),
        e_value=math.exp(min(log_e, MOST_LOG)),
        needed=1 / alpha,
        margin=1 / margin if less else margin,
        outcome="worse" if low > metric.tolerate else "safe" if high < margin or fine else "undecided",
        num_new=events_new,
        num_old=events_old,
        share_new=shares[0],
        share_old=shares[1],
    )


def num_of(metric: Metric, counts: Counts) -> int:
    """How often it happened."""
    if metric.kind == "above":
        return num_above(counts.buckets(metric.counted), metric.limit or 0.0)
    return counts.num_of(metric.counted)


def _is_rare(metric: Metric, num: int, events: int, allowed: float | None, alpha: float) -> bool:
    if allowed is None or metric.worse == "less":
        return False
    return share.log_e_share_below(num, events, allowed) >= -math.log(alpha)


def _rate_ratio(splits: Sequence[ratio.Split]) -> float | None:
    """The ratio that makes the events of all epochs most likely, to the first order (Mantel and Haenszel)."""
    above = sum(split.new * (1 - split.share) for split in splits)
    below = sum(split.old * split.share for split in splits)
    return above / below if below else None


def _turned(value: float | None, *, less: bool) -> float | None:
    if value is None or not less:
        return value
    return None if value == 0 else 1 / value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def agreement_test(
    plan: Plan, metric: Metric, epochs: Sequence[Epoch], next_share: float, alpha: float
) -> MetricTest:
    """How often the shadow says something else, against a fixed share."""
    together = add_counts(epoch.new for epoch in epochs)
    num, differ = together.num_of(COMPARED), together.num_of(DISAGREED)
    limit, margin = metric.limit or 0.0, min((metric.limit or 0.0) * stage_margin(metric, next_share), 0.9)
    low, high = share.share_interval(num, differ, alpha, plan.alpha)
    return MetricTest(
        metric=metric.name,
        estimate=differ / num if num else None,
        ci_low=low,
        ci_high=high,
        e_value=math.exp(min(share.log_e_share_above(num, differ, limit), MOST_LOG)),
        needed=1 / alpha,
        margin=margin,
        outcome="worse" if low > limit else "safe" if high < margin else "undecided",
        num_new=differ,
        share_new=differ / num if num else None,
    )
