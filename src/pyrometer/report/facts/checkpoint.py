"""A checkpoint plan in words."""

from __future__ import annotations

from pyrometer.quantity import format_bytes, format_interval, format_seconds, time_unit
from pyrometer.report.facts.layout import Fact, Section, Table
from pyrometer.tuning.checkpointing.record import CheckpointPlan, GradientMatch

MOST_LISTED = 12


def chapter(plan: CheckpointPlan) -> Section:
    """What to compute again, what it brings and costs, and the choices that were left."""
    facts = [Fact("in short", plan.sentence)]
    facts += [
        Fact("recompute", module, plan.policy.get(module, "full")) for module in plan.modules[:MOST_LISTED]
    ]
    if len(plan.modules) > MOST_LISTED:
        facts.append(Fact("and", f"{len(plan.modules) - MOST_LISTED} more modules"))
    facts += [_figures("as written", plan, planned=False), _figures("planned", plan, planned=True)]
    if plan.equal is not None:
        facts.append(Fact("gradients", _match(plan.equal)))
    facts += [Fact("note", note) for note in plan.notes]
    rows = [
        (
            f"{len(point.modules)} recomputed" if point.modules else "none recomputed",
            format_bytes(point.peak_bytes),
            format_seconds(point.step_s),
            f"every {point.k}" if point.k is not None else "best",
        )
        for point in [*plan.frontier, *plan.every_k]
    ]
    rows.sort(key=lambda row: row[3] != "best")
    table = Table(("choice", "peak", "step", "which"), rows, frozenset({3}))
    how = "By the model of the step, from measured bytes and times of each module: no choice beats a “best” one in both memory and time. Every k-th block is what a rule of thumb would choose."
    return Section("plan", "Computing activations again", facts, table if rows else None, how)


def _figures(name: str, plan: CheckpointPlan, *, planned: bool) -> Fact:
    figures = plan.planned if planned else plan.baseline
    text = f"peak {format_bytes(figures.peak_bytes)}"
    if figures.step_s is not None:
        text += f", step {format_seconds(figures.step_s)}"
        if len(figures.step_s_ci) == 2:
            size, unit = time_unit(figures.step_s)
            low, high = figures.step_s_ci
            text += f" ({format_interval(low, high, size)} {unit})"
    predicted = figures.predicted_peak_bytes
    return Fact(name, text, f"predicted {format_bytes(predicted)}" if predicted is not None else "")


def _match(match: GradientMatch) -> str:
    if match.bitwise:
        return "equal to the last bit"
    how = "equal within rounding" if match.equal else "different"
    return f"{how}: at most {match.max_error:.2g} apart, two runs as written {match.baseline_error:.2g}"
