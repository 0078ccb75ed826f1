"""`pyrometer serve --plan` as people read it."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.document import Document
from pyrometer.quantity import counted, format_percent, format_seconds
from pyrometer.serving.planning.interval import Interval
from pyrometer.serving.planning.plan import Plan


class PlanDocument(Document, frozen=True, kw_only=True):
    """`pyrometer serve TARGET --plan ARRIVALS --json`."""

    target: str
    plan: Plan


def plan_lines(plan: Plan) -> Iterator[str]:
    """A row per policy, the recommended one marked, and the advice."""
    yield f"{plan.arrivals}: {plan.num_requests:,} requests, {plan.rate:.0f} a second"
    yield ""
    width = max(len(one.name) for one in plan.policies) + 2
    yield f"{'policy':<{width}}{'P50':>9}  {'P99 (95 % interval)':<28}{'rows':>5}{'padding':>9}{'busy':>7}"
    for one in plan.policies:
        mark = "*" if one.name == plan.recommended else " "
        name = f"{mark} {one.name}"
        fate = "" if one.keeps_up else "  does not keep up"
        yield (
            f"{name:<{width}}{format_seconds(one.p50_s.value):>9}  {_tail(one.p99_s):<28}{one.mean_rows:>5.1f}"
            f"{format_percent(one.padding_share, 2):>9}{format_percent(one.busy_share, 2):>7}{fate}"
        )
    yield ""
    yield plan.sentence
    trial = plan.trial
    yield (
        f"measured on {counted(trial.num_requests, 'request')} that this server got in {format_seconds(trial.span_s)}: "
        f"P50 {format_seconds(trial.p50_s.value)}, P99 {format_seconds(trial.p99_s.value)} as set"
    )


def _tail(interval: Interval) -> str:
    return f"{format_seconds(interval.value)} ({format_seconds(interval.low)} to {format_seconds(interval.high)})"
