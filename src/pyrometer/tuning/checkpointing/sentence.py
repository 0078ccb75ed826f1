"""A plan in one sentence."""

from __future__ import annotations

from pyrometer.bench.comparison.verdict import sentence
from pyrometer.quantity import counted, format_bytes, format_percent
from pyrometer.tuning.checkpointing.record import CheckpointPlan


def plan_sentence(plan: CheckpointPlan) -> str:
    """What to do and what it brings, or why nothing helps."""
    before, after = plan.baseline.peak_bytes, plan.planned.peak_bytes
    if plan.fits is False:
        reach = f"the least peak within reach is {format_bytes(plan.least_peak_bytes)}"
        slow = " within the allowed slowdown" if plan.max_slowdown is not None else ""
        wish = (
            f"{format_bytes(plan.budget_bytes)} cannot be met{slow} by computing activations again: {reach}"
        )
        return wish if not plan.modules else f"{wish}; planned: {_effect(plan)}"
    if not plan.modules and plan.activation_budget is None:
        if plan.budget_bytes is not None:
            return f"nothing to do: the peak of {format_bytes(before)} is within {format_bytes(plan.budget_bytes)}"
        return f"nothing helps: no choice of modules lowers the peak of {format_bytes(before)}"
    if after >= before:
        return f"nothing helps: {_effect(plan)}"
    return _effect(plan)


def _effect(plan: CheckpointPlan) -> str:
    before, after = plan.baseline.peak_bytes, plan.planned.peak_bytes
    what = (
        f"checkpoint {counted(len(plan.modules), 'module')}"
        if plan.activation_budget is None
        else f"activation_memory_budget {plan.activation_budget:g}"
    )
    less = f" ({format_percent(1 - after / before, 2)} less)" if after < before else ""
    time = f", step {sentence(plan.verdict)}" if plan.verdict is not None else ""
    equal = ""
    if plan.equal is not None:
        equal = ", gradients equal" if plan.equal.equal else ", GRADIENTS DIFFER"
    return f"{what}: peak {format_bytes(before)} → {format_bytes(after)}{less}{time}{equal}"
