"""Plans and counts of rollouts, for tests."""

from __future__ import annotations

from pyrometer.rollout.counts import ERRORS, LATENCY, Counts
from pyrometer.rollout.plan import Plan, default_metrics


def make_plan(**fields):
    given = {"name": "perception", "old": "v1", "new": "v2", "min_s": 10.0, "min_samples": 100}
    return Plan(**{**given, "metrics": default_metrics(), **fields})


def counts(num, errors=0, *, bucket=-200, **more):
    events = {name.replace("_", "-"): count for name, count in more.items()}
    return Counts(num=num, events={ERRORS: errors, **events}, values={LATENCY: {bucket: num - errors}})
