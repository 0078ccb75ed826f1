"""What to do about sizes that vary, in words."""

from __future__ import annotations

from pyrometer.quantity import counted, format_ratio, format_seconds
from pyrometer.report.facts.layout import Fact, Section, Table, percent
from pyrometer.report.facts.trace_words import short
from pyrometer.tuning.shapes.record import BucketPlan, ShapeStrategies, StrategyResult


def chapter(strategies: ShapeStrategies) -> Section:
    """The ways that were measured, and the one to take."""
    facts = [Fact("verdict", strategies.advice.text)]
    if strategies.plan is not None:
        facts.append(Fact("edges", edges_text(strategies.plan)))
    facts.append(
        Fact("sample", counted(strategies.num_samples, "call"), counted(strategies.num_sizes, "size"))
    )
    columns = (
        "way",
        "graphs",
        "compiling",
        "mean step",
        "against eager",
        "padding",
        f"{strategies.expected_calls:,} calls",
    )
    body = [
        _row(strategy, best=strategy.name == strategies.recommended) for strategy in strategies.strategies
    ]
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


def _row(strategy_result: StrategyResult, *, best: bool) -> tuple[str, ...]:
    name = f"● {strategy_result.name}" if best else strategy_result.name
    if strategy_result.failure is not None:
        return name, "–", "–", "–", short(strategy_result.failure, 90), "–", "–"
    compiling = format_seconds(strategy_result.compile_s)
    against = strategy_result.note
    if strategy_result.verdict is not None:
        ratio = format_ratio(
            strategy_result.verdict.ratio,
            strategy_result.verdict.ci_low or strategy_result.verdict.ratio,
            strategy_result.verdict.ci_high or strategy_result.verdict.ratio,
        )
        against = (
            ratio
            if strategy_result.verdict.outcome in {"faster", "slower"}
            else f"{strategy_result.verdict.outcome}: {ratio}"
        )
    return (
        name,
        "–" if strategy_result.num_graphs is None else str(strategy_result.num_graphs),
        f"~{compiling}" if strategy_result.compile_estimated else compiling,
        format_seconds(strategy_result.step_s),
        against,
        percent(strategy_result.padding_share) if strategy_result.padding_share else "–",
        format_seconds(strategy_result.total_s),
    )
