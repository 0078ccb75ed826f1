"""What to do about sizes that vary, in words."""

from __future__ import annotations

from pyrometer.quantity import counted, format_ratio, format_seconds
from pyrometer.report.facts.layout import Fact, Section, Table, percent
from pyrometer.report.facts.trace_words import short
from pyrometer.tuning.shapes.record import BucketPlan, ShapeStrategies, StrategyResult


def chapter(found: ShapeStrategies) -> Section:
    """The ways that were measured, and the one to take."""
    facts = [Fact("verdict", found.advice.text)]
    if found.plan is not None:
        facts.append(Fact("edges", edges_text(found.plan)))
    facts.append(Fact("sample", counted(found.num_samples, "call"), counted(found.num_sizes, "size")))
    columns = (
        "way",
        "graphs",
        "compiling",
        "mean step",
        "against eager",
        "padding",
        f"{found.expected_calls:,} calls",
    )
    body = [_row(one, best=one.name == found.recommended) for one in found.strategies]
    how = (
        "Every way ran at the same sizes of the sample, in turn; a compile time with ~ is extrapolated from the graphs that were "
        "compiled. The last column is compiling and all calls together."
    )
    return Section("shapes", "Sizes that vary", facts, Table(columns, body, frozenset({4})), how)


def edges_text(plan: BucketPlan) -> str:
    """The edges of each dimension that varies.

    >>> from pyrometer.tuning.shapes.record import AxisPlan
    >>> edges_text(BucketPlan(axes=[AxisPlan(name="length", edges=[128, 160, 200])]))
    'length: 128, 160, 200'
    """
    return "; ".join(f"{axis.name}: {', '.join(map(str, axis.edges))}" for axis in plan.axes)


def _row(one: StrategyResult, *, best: bool) -> tuple[str, ...]:
    name = f"● {one.name}" if best else one.name
    if one.failure is not None:
        return name, "–", "–", "–", short(one.failure, 90), "–", "–"
    compiling = format_seconds(one.compile_s)
    against = one.note
    if one.verdict is not None:
        ratio = format_ratio(
            one.verdict.ratio,
            one.verdict.ci_low or one.verdict.ratio,
            one.verdict.ci_high or one.verdict.ratio,
        )
        against = ratio if one.verdict.outcome in {"faster", "slower"} else f"{one.verdict.outcome}: {ratio}"
    return (
        name,
        "–" if one.num_graphs is None else str(one.num_graphs),
        f"~{compiling}" if one.compile_estimated else compiling,
        format_seconds(one.step_s),
        against,
        percent(one.padding_share) if one.padding_share else "–",
        format_seconds(one.total_s),
    )
