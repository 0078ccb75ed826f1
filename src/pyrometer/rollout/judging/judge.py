"""The judge: counts in, judgement out; it may be asked after every observation.

Harm is proved for each metric at alpha divided by their number, so that all of them together roll back a version like the old one with
probability alpha at most. A stage is safe when harm beyond its margin is ruled out for every metric; there each takes the whole alpha, since
all of them have to agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pyrometer.rollout.judging import share
from pyrometer.rollout.judging.events import agreement_test, events_test
from pyrometer.rollout.judging.guards import broken_guards
from pyrometer.rollout.judging.judgement import MOST_LOG, Judgement, MetricTest, conclude
from pyrometer.rollout.judging.quantities import quantity_test
from pyrometer.rollout.judging.replicas import judge_replicas
from pyrometer.rollout.observed import Epoch, Observed
from pyrometer.rollout.plan import Metric, Plan

MISMATCH_ALPHA = 0.001


def judge(plan: Plan, seen: Observed, *, next_share: float) -> Judgement:
    """What all that was counted says of the next stage."""
    latest = seen.epochs[-1]
    broken = broken_guards(seen.epochs)
    if plan.is_randomised:
        tests = [_test(plan, metric, seen.epochs, next_share) for metric in plan.metrics]
        mismatch = share.log_e_mismatch((one.share, one.new.num, one.old.num) for one in seen.epochs)
        judged = _conclude(tests, mismatch)
    else:
        judged, mismatch = judge_replicas(plan, seen.reports, next_share=next_share), None
    return Judgement(
        outcome="worse" if broken else judged.outcome,
        reason=broken[0].said if broken else judged.reason,
        is_final=judged.is_final and not broken,
        tests=judged.tests,
        guards=broken,
        num_new=latest.new.num,
        num_old=latest.old.num,
        num_all=sum(epoch.new.num for epoch in seen.epochs),
        mismatch_e_value=None if mismatch is None else math.exp(min(mismatch, MOST_LOG)),
    )


def _conclude(tests: Sequence[MetricTest], mismatch: float) -> Judgement:
    if mismatch >= -math.log(MISMATCH_ALPHA):
        said = "versions did not get the shares that they were promised; mend the assignment or what loses observations, and start anew"
        return Judgement(outcome="mismatch", reason=said, tests=list(tests))
    return conclude(tests)


def _test(plan: Plan, metric: Metric, epochs: Sequence[Epoch], next_share: float) -> MetricTest:
    alpha_harm = plan.alpha / len(plan.metrics)
    makers = {"values": quantity_test, "agreement": agreement_test}
    return makers.get(metric.kind, events_test)(plan, metric, epochs, next_share, alpha_harm)
