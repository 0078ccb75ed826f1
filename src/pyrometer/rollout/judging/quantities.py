"""The test of a quantity, such as latency: the ratio of geometric means."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyrometer.rollout.counts import level_of
from pyrometer.rollout.judging import level
from pyrometer.rollout.judging.judgement import MOST_LOG, MetricTest
from pyrometer.rollout.judging.margins import stage_margin
from pyrometer.rollout.observed import Epoch
from pyrometer.rollout.plan import Metric, Plan


def quantity_test(
    plan: Plan, metric: Metric, epochs: Sequence[Epoch], next_share: float, alpha: float
) -> MetricTest:
    """How large it is under the new version, against the old."""
    levels = [
        (level_of(epoch.new.buckets(metric.counted)), level_of(epoch.old.buckets(metric.counted)))
        for epoch in epochs
        if 0 < epoch.share < 1
    ]
    found = level.difference(levels)
    margin = stage_margin(metric, next_share)
    num_new, num_old = sum(new.num for new, _ in levels), sum(old.num for _, old in levels)
    less = metric.worse == "less"
    if found is None:
        return MetricTest(metric=metric.name, needed=1 / alpha, margin=1 / margin if less else margin, outcome="undecided",
                    num_new=num_new, num_old=num_old)  # fmt: skip
    return difference_test(metric, found, margin, (alpha, plan.alpha), (num_new, num_old))


def difference_test(
    metric: Metric, found: level.Difference, margin: float, alphas: tuple[float, float], nums: tuple[int, int]
) -> MetricTest:
    """The test of a difference of mean logarithms; `alphas` are those of harm and of its absence."""
    less = metric.worse == "less"
    harm = found._replace(mean=-found.mean) if less else found
    low, high = (math.exp(bound) for bound in harm.bounds(*alphas))
    log_e = harm.log_e_above(math.log(metric.tolerate), alphas[0])
    estimate = math.exp(found.mean)
    return MetricTest(
        metric=metric.name,
        estimate=estimate,
        ci_low=1 / high if less else low,
        ci_high=1 / low if less else high,
        e_value=math.exp(min(log_e, MOST_LOG)),
        needed=1 / alphas[0],
        margin=1 / margin if less else margin,
        outcome="worse" if low > metric.tolerate else "safe" if high < margin else "undecided",
        num_new=nums[0],
        num_old=nums[1],
        p_value=found.p_value,
        improvement=1 - estimate,
    )
