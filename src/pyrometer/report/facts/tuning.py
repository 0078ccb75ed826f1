"""What a `Tuning` says: what was kept, what it brings, and every lever that was tried."""

from __future__ import annotations

from pyrometer.bench.comparison.verdict import sentence
from pyrometer.quantity import (
    counted,
    format_bytes,
    format_ratio,
    format_seconds,
    significant,
)
from pyrometer.report.documents import TuneDocument
from pyrometer.report.facts.layout import Fact, Table
from pyrometer.tuning.outcome import Goal, LeverOutcome

ORDER = (
    "kept", "undecided", "no gain", "slower", "wrong numbers", "not applied", "failed", "untried", "not applicable",
)  # fmt: skip
"""Outcomes in the order in which they are told."""


def headline(document: TuneDocument) -> str:
    """What the recipe brings."""
    if document.final is None or not document.recipe.levers:
        return "nothing to change: no lever is proved to be faster"
    return sentence(document.final)


def step_change(document: TuneDocument) -> str:
    """The step before and after; empty where nothing was kept."""
    verdict = document.final
    if verdict is None or verdict.baseline_s is None or not document.recipe.levers:
        return f"{format_seconds(document.baseline.median_s)} per step"
    return f"{format_seconds(verdict.baseline_s)} → {format_seconds(verdict.baseline_s * verdict.ratio)} per step"


def recipe_line(document: TuneDocument) -> str:
    """The levers of the recipe."""
    return " + ".join(choice.label for choice in document.recipe.levers) or "the program as it is"


def in_order(document: TuneDocument) -> list[LeverOutcome]:
    """What was kept first, then by outcome; what is fastest first."""
    return sorted(document.levers, key=lambda each: (ORDER.index(each.outcome), each.ratio or 9.0))


def ratio_figure(outcome: LeverOutcome) -> str:
    """The paired ratio with its interval; empty where nothing was timed."""
    if outcome.ratio is None:
        return ""
    if outcome.ci_low is None or outcome.ci_high is None:
        return f"about {outcome.ratio:.2f}"
    return format_ratio(outcome.ratio, outcome.ci_low, outcome.ci_high)


def predicted_figure(outcome: LeverOutcome) -> str:
    """What findings predicted; empty where none did."""
    low, high = outcome.predicted_low, outcome.predicted_high
    if low is None or high is None or not low or not high:
        return ", ".join(outcome.rules)
    faster = f"{significant(1 / high)}–{significant(1 / low)}×"
    return f"{faster} by {', '.join(outcome.rules)}"


def error_figure(outcome: LeverOutcome) -> str:
    """The largest error over the largest value."""
    return "" if outcome.max_rel_error is None else f"{outcome.max_rel_error:.1e}"


def price_figure(outcome: LeverOutcome) -> str:
    """Seconds to apply it and to compile, and bytes on disk."""
    parts = [] if outcome.price_s is None else [format_seconds(outcome.price_s)]
    if outcome.artefact_bytes:
        parts.append(format_bytes(outcome.artefact_bytes))
    return ", ".join(parts)


def lever_table(document: TuneDocument) -> Table:
    """Every lever that was tried; those that do not fit the program are in a table of their own."""
    columns = ("lever", "outcome", "paired ratio", "predicted", "error", "price", "why")
    rows = [
        (
            each.label,
            each.outcome,
            ratio_figure(each),
            predicted_figure(each),
            error_figure(each),
            price_figure(each),
            each.reason,
        )
        for each in in_order(document)
        if each.outcome != "not applicable"
    ]
    return Table(columns, rows, words=frozenset({1, 2, 3, 6}))


def left_out_table(document: TuneDocument) -> Table:
    """Levers that do not fit, and why."""
    rows = [(each.label, each.reason) for each in document.levers if each.outcome == "not applicable"]
    return Table(("lever", "why it was not tried"), rows, words=frozenset({1}))


def goal_facts(document: TuneDocument) -> list[Fact]:
    """Each goal, what was reached, and what the hardware still leaves."""
    return [Fact(goal.name, goal_line(goal), goal.left) for goal in document.targets]


def goal_line(goal: Goal) -> str:
    """A goal in one line.

    >>> goal_line(Goal(name="latency", goal=0.01, reached=0.0083, met=True))
    '✓ 8.3 ms, where 10 ms is the goal'
    """
    show = format_seconds if goal.name == "latency" else format_bytes
    mark = {True: "✓", False: "✗", None: "?"}[goal.met]
    return f"{mark} {show(goal.reached)}, where {show(goal.goal)} is the goal"


def numerics_line(document: TuneDocument) -> str:
    """How far the recipe's results are from the baseline's."""
    numerics = document.numerics
    if numerics is None or numerics.max_rel is None:
        return ""
    cases = counted(len(numerics.counted), "case")
    cosine = "" if numerics.cosine is None else f", cosine {numerics.cosine:.5f}"
    return f"error {numerics.max_rel:.1e} of the largest value{cosine}, over {cases}"


def proof_line(document: TuneDocument) -> str:
    """What the figure rests on."""
    verdict = document.final
    if verdict is None:
        return f"{counted(len(tried(document)), 'lever')} tried, each in a process of its own"
    pairs = counted(verdict.num_processes or 0, "pair")
    return f"{pairs} of fresh processes, on fresh inputs"


def tried(document: TuneDocument) -> list[LeverOutcome]:
    """The levers that were run."""
    return [each for each in document.levers if each.outcome not in {"not applicable", "untried"}]
