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
from pyrometer.report.facts.layout import Fact, Table
from pyrometer.tuning.outcome import Goal, LeverOutcome, RecipeSummary, Tuning
from pyrometer.tuning.trials.gate import Numerics

ORDER = (
    "kept", "undecided", "no gain", "slower", "wrong numbers", "not applied", "failed", "untried", "not applicable",
)  # fmt: skip
"""Outcomes in the order in which they are told."""


def headline(document: Tuning) -> str:
    """What the recipe brings."""
    if document.interrupted and (document.final is None or not document.recipe.levers):
        found = f"; kept until then: {recipe_line(document)}" if document.recipe.levers else ""
        return f"interrupted before anything was proved{found}"
    if is_too_short(document):
        return "nothing could be tried: the budget was over before the first lever"
    if document.applied is not None:
        return (
            "applied, but it computes other numbers"
            if _is_wrong(document)
            else "applied, with the same results"
        )
    if document.final is None or not document.recipe.levers:
        return "nothing to change: no lever is proved to be faster"
    if (
        document.final.outcome == "undecided"
    ):  # a few pairs of processes: the interval says more than their number
        return (
            f"undecided: {ratio_words(document.final.ratio, document.final.ci_low, document.final.ci_high)}"
        )
    return sentence(document.final)


def _is_wrong(document: Tuning) -> bool:
    return document.numerics is not None and not document.numerics.passes


def is_too_short(document: Tuning) -> bool:
    """Whether the budget was over before the first lever, so that going on with as much would end in the same."""
    is_left = any(each.outcome == "untried" for each in document.levers)
    return is_left and not tried(document) and not document.interrupted


def top_figures(document: Tuning) -> list[Fact]:
    """The figures that a reader looks for first: time, error, memory, and what was tried."""
    m, verdict, numerics = document.baseline, document.final, document.numerics
    before = (verdict.baseline_s if verdict is not None else None) or m.median_s
    figures = [
        Fact(
            "Baseline",
            format_seconds(before),
            f"{format_seconds(m.ci_low_s)}–{format_seconds(m.ci_high_s)} before the search",
        )
    ]
    after = None if document.applied is None else document.applied.median_s
    if verdict is not None and document.recipe.levers:
        after = before * verdict.ratio
    if after is not None:
        levers = counted(len(document.recipe.levers), "lever")
        figures.append(Fact("Recipe", format_seconds(after), levers))
        if numerics is not None and numerics.max_rel is not None:
            figures.append(Fact("Largest error", figure_of(numerics.max_rel), _numerics_note(numerics)))
    left = sum(each.outcome == "untried" for each in document.levers)
    figures.append(
        Fact(
            "Levers tried",
            str(len(tried(document))),
            f"{len(document.recipe.levers)} kept" + (f", {left} not reached" if left else ""),
        )
    )
    return figures


def _numerics_note(numerics: Numerics) -> str:
    cosine = "" if numerics.cosine is None else f", cosine {numerics.cosine:.5f}"
    return f"{counted(len(numerics.counted), 'case')}{cosine}"


def apply_command(recipe: RecipeSummary, target: str) -> str:
    """How the recipe is applied: in Python, or to a script on its ranks.

    >>> apply_command(RecipeSummary(path="a.recipe.toml", levers=[]), "a.py:workload")
    'model = pm.load_recipe("a.recipe.toml").apply(model)'
    >>> apply_command(RecipeSummary(path="a.recipe.toml", levers=[], num_ranks=2), "a.py")
    'pyrometer tune a.py --nproc 2 --recipe a.recipe.toml --apply'
    """
    if recipe.num_ranks is not None:
        return f"pyrometer tune {target} --nproc {recipe.num_ranks} --recipe {recipe.path} --apply"
    return f'model = pm.load_recipe("{recipe.path}").apply(model)'


def step_change(document: Tuning) -> str:
    """The step before and after; empty where nothing was kept."""
    verdict = document.final
    if document.applied is not None:
        return f"{format_seconds(document.applied.median_s)} per step"
    if verdict is None or verdict.baseline_s is None or not document.recipe.levers:
        return f"{format_seconds(document.baseline.median_s)} per step"
    return f"{format_seconds(verdict.baseline_s)} → {format_seconds(verdict.baseline_s * verdict.ratio)} per step"


def recipe_line(document: Tuning) -> str:
    """The levers of the recipe."""
    return " + ".join(choice.label for choice in document.recipe.levers) or "the program as it is"


def in_order(document: Tuning) -> list[LeverOutcome]:
    """What was kept first, then by outcome; what is fastest first."""
    return sorted(document.levers, key=lambda each: (ORDER.index(each.outcome), each.ratio or 9.0))


def ratio_figure(outcome: LeverOutcome) -> str:
    """The paired ratio with its interval; empty where nothing was timed."""
    if outcome.ratio is None:
        return ""
    return ratio_words(outcome.ratio, outcome.ci_low, outcome.ci_high)


def ratio_words(ratio: float, low: float | None, high: float | None) -> str:
    """A ratio with its interval, where there is one."""
    if low is None or high is None:
        return f"about {significant(ratio)}×"
    return format_ratio(ratio, low, high)


def predicted_figure(outcome: LeverOutcome) -> str:
    """What was predicted, by which rules; without them it is what the lever brought to other models of the kind."""
    low, high = outcome.predicted_low, outcome.predicted_high
    if low is None or high is None or not low or not high:
        return ", ".join(outcome.rules)
    faster = f"{significant(1 / high)}–{significant(1 / low)}×"
    return f"{faster} by {', '.join(outcome.rules)}" if outcome.rules else faster


def error_figure(outcome: LeverOutcome) -> str:
    """The largest error over the largest value."""
    return "" if outcome.max_rel_error is None else figure_of(outcome.max_rel_error)


def figure_of(error: float) -> str:
    """An error in two digits.

    >>> figure_of(0.0), figure_of(0.000123)
    ('0', '1.2e-04')
    """
    return f"{error:.1e}" if error else "0"


def price_figure(outcome: LeverOutcome) -> str:
    """Seconds to apply it and to compile, and bytes on disk."""
    parts = [] if outcome.price_s is None else [format_seconds(outcome.price_s)]
    if outcome.artefact_bytes:
        parts.append(format_bytes(outcome.artefact_bytes))
    return ", ".join(parts)


def lever_table(document: Tuning) -> Table:
    """Every lever that was tried; those that do not fit the program are in a table of their own."""
    columns = ("lever", "outcome", "paired ratio", "predicted", "largest error", "price", "why")
    rows = [
        (
            each.label,
            each.outcome,
            ratio_figure(each),
            predicted_figure(each),
            error_figure(each),
            price_figure(each),
            "" if each.reason == ratio_figure(each) else each.reason,
        )
        for each in in_order(document)
        if each.outcome != "not applicable"
    ]
    return Table(columns, rows, words=frozenset({1, 2, 3, 6}))


def left_out_table(document: Tuning) -> Table:
    """Levers that do not fit, and why."""
    rows = [(each.label, each.reason) for each in document.levers if each.outcome == "not applicable"]
    return Table(("lever", "why it was not tried"), rows, words=frozenset({1}))


def goal_facts(document: Tuning) -> list[Fact]:
    """Each goal, what was reached, and what the hardware still leaves."""
    return [Fact(goal.name, goal_figure(goal), goal.left) for goal in document.targets]


def goal_words(goal: Goal) -> str:
    """A goal in one line.

    >>> goal_words(Goal(name="latency", goal=0.01, reached=0.0083, met=True))
    '✓ latency 8.30 ms, goal 10.0 ms'
    """
    return _goal_said(goal, f" {goal.name}")


def goal_figure(goal: Goal) -> str:
    """The same without the name.

    >>> goal_figure(Goal(name="latency", goal=0.01, reached=0.02, met=False))
    '✗ 20.0 ms, goal 10.0 ms'
    """
    return _goal_said(goal, "")


def _goal_said(goal: Goal, name: str) -> str:
    show = format_seconds if goal.name == "latency" else format_bytes
    mark = {True: "✓", False: "✗", None: "?"}[goal.met]
    reached = "not measured" if goal.reached is None else show(goal.reached)
    return f"{mark}{name} {reached}, goal {show(goal.goal)}"


def error_words(error: float | None) -> str:
    """The largest error in words.

    >>> error_words(0.0), error_words(1.234e-5), error_words(None)
    ('same results', 'error 1.2e-05', 'error not known')
    """
    if error is None:
        return "error not known"
    return f"error {error:.1e}" if error else "same results"


def error_line(document: Tuning) -> str:
    """How far the recipe's results are from the baseline's, in a few words; empty where nothing was compared."""
    numerics = document.numerics
    if numerics is None or numerics.max_rel is None:
        return ""
    return f"{error_words(numerics.max_rel)} in {counted(len(numerics.counted), 'case')}"


def proof_line(document: Tuning) -> str:
    """What the figure rests on."""
    verdict = document.final
    if document.applied is not None:
        return "times are not compared"
    if verdict is None:
        return f"{counted(len(tried(document)), 'lever')} tried, each in a process of its own"
    return f"{counted(verdict.num_processes or 0, 'pair')} of fresh processes, fresh inputs"


def tried(document: Tuning) -> list[LeverOutcome]:
    """The levers that were run."""
    return [each for each in document.levers if each.outcome not in {"not applicable", "untried"}]
