"""Two recipes of one model beside each other, in words and tables."""

from __future__ import annotations

from pyrometer.quantity import format_seconds
from pyrometer.report.facts import tuning as facts
from pyrometer.report.facts.comparison import SIDES
from pyrometer.report.facts.layout import Table
from pyrometer.tuning.outcome import LeverOutcome
from pyrometer.tuning.recipe.comparing import RecipeComparison, RecipeSide

NOTE = (
    "Each recipe was confirmed against the program as it was at that moment: the ratios stand beside each other for display, "
    "and are no verdict on one recipe against the other."
)


def headline(recipes: RecipeComparison) -> str:
    """What both recipes bring."""
    return f"A: {_brings(recipes.a)} · B: {_brings(recipes.b)}"


def side_table(recipes: RecipeComparison) -> Table:
    """Both recipes: levers, ratio, error, goals."""
    sides = (recipes.a, recipes.b)
    rows = [
        ("recipe", *(_levers(side) for side in sides)),
        ("ratio, confirmed", *(_brings(side) for side in sides)),
        ("step", *(_step(side) for side in sides)),
        (
            "largest error",
            *("–" if side.max_rel_error is None else facts.figure_of(side.max_rel_error) for side in sides),
        ),
        ("cosine", *("–" if side.cosine is None else f"{side.cosine:.5f}" for side in sides)),
        ("search took", *(format_seconds(side.elapsed_s) for side in sides)),
    ]
    names = dict.fromkeys(goal.name for side in sides for goal in side.targets)
    rows += [(f"goal: {name}", *(_goal(side, name) for side in sides)) for name in names]
    return Table(("", *SIDES), rows, words=frozenset({1, 2}))


def lever_table(recipes: RecipeComparison) -> Table:
    """What became of each lever that was tried on either side."""
    rows = [(pair.lever, _became(pair.a), _became(pair.b)) for pair in recipes.levers]
    return Table(("lever", *SIDES), rows, words=frozenset({1, 2}))


def _levers(side: RecipeSide) -> str:
    return " + ".join(choice.label for choice in side.levers) or "the program as it is"


def _brings(side: RecipeSide) -> str:
    if side.ratio is None:
        return "nothing to change"
    return facts.ratio_words(side.ratio, side.ci_low, side.ci_high)


def _step(side: RecipeSide) -> str:
    before = format_seconds(side.baseline_s)
    return before if side.ratio is None else f"{before} → {format_seconds(side.baseline_s * side.ratio)}"


def _goal(side: RecipeSide, name: str) -> str:
    return next((facts.goal_figure(goal) for goal in side.targets if goal.name == name), "–")


def _became(outcome: LeverOutcome | None) -> str:
    if outcome is None:
        return "–"
    parts = [outcome.outcome, facts.ratio_figure(outcome)]
    parts += [facts.error_words(outcome.max_rel_error)] if outcome.max_rel_error is not None else []
    return " · ".join(part for part in parts if part)
