"""The course of a search: from the baseline step by step to the recipe, trial by trial, and predicted beside measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds, counted, format_percent, format_seconds, significant
from pyrometer.report.charts.intervals import IntervalRow, Intervals
from pyrometer.report.charts.scale import SECONDS, plain
from pyrometer.report.charts.shares import Share
from pyrometer.report.charts.trials import Trial
from pyrometer.report.facts import tuning as facts
from pyrometer.report.facts.layout import Table
from pyrometer.tuning.levers.choice import LeverChoice
from pyrometer.tuning.outcome import LeverOutcome, LeverResult, Tuning
from pyrometer.tuning.predictions import PredictedLever, predicted_levers

SLOTS: dict[LeverResult, int] = {
    "kept": 4,
    "no gain": 5,
    "slower": 6,
    "wrong numbers": 3,
    "undecided": 1,
    "not applied": 8,
    "failed": 7,
    "not applicable": 9,
}
"""Colours of outcomes."""

DIRECTIONS = ("← faster", "slower →")


class Rung(NamedTuple):
    """A step of the ladder: what was added, and how long a step takes then."""

    name: str
    step_s: Seconds
    low_s: Seconds | None
    high_s: Seconds | None
    outcome: LeverOutcome | None = None  # null of the baseline and of the confirmed recipe


def ladder(document: Tuning) -> list[Rung]:
    """From the baseline to the confirmed recipe; nothing where no lever was kept.

    The ratios of single levers are multiplied, and their intervals with them, as independent; the last rung is measured as a whole.
    """
    if document.final is None or not document.recipe.levers:
        return []
    final = document.final
    begin_s = _before(document)
    rungs = [Rung("baseline", begin_s, None, None)]
    ratio, below, above = 1.0, 0.0, 0.0
    for each in steps_up(document):
        assert each.ratio is not None  # of every step, see `steps_up`
        low, high = (each.ratio if end is None else end for end in (each.ci_low, each.ci_high))
        ratio *= each.ratio
        below = math.hypot(below, math.log(each.ratio / low))
        above = math.hypot(above, math.log(high / each.ratio))
        step_s = begin_s * ratio
        rungs.append(
            Rung(f"+ {each.label}", step_s, step_s * math.exp(-below), step_s * math.exp(above), each)
        )
    low_s, high_s = (None if end is None else begin_s * end for end in (final.ci_low, final.ci_high))
    return [*rungs, Rung("the recipe, confirmed", begin_s * final.ratio, low_s, high_s)]


def _before(document: Tuning) -> Seconds:
    """The step of the baseline as it was confirmed, so that all rungs are on one scale: machines wander between moments."""
    confirmed = None if document.final is None else document.final.baseline_s
    return confirmed or document.baseline.median_s


def steps_up(document: Tuning) -> list[LeverOutcome]:
    """The trials that the search went on from, in order: each was at once better than the one before."""
    gone_on_from = [each.against for each in document.levers] + [document.recipe.levers]
    reached: list[LeverChoice] = []
    steps = []
    for each in document.levers:
        decided = each.ratio is not None and each.ci_high is not None and each.ratio > 0 and each.ci_high < 1
        if decided and each.against == reached and each.configuration in gone_on_from:
            steps.append(each)
            reached = each.configuration
    return steps


def ladder_drawing(document: Tuning) -> Intervals:
    """The ladder on one axis of step times."""
    rungs = ladder(document)
    first = _before(document)
    rows = [
        IntervalRow(
            rung.name,
            _step_words(rung),
            rung.step_s,
            rung.low_s,
            rung.high_s,
            "faster" if rung.step_s < first else "",
            f"{significant(first / rung.step_s)}×" if rung.step_s < first else "",
        )
        for rung in rungs
    ]
    return Intervals(rows, SECONDS, first, DIRECTIONS)


def _step_words(rung: Rung) -> str:
    words = format_seconds(rung.step_s)
    if rung.low_s is not None and rung.high_s is not None:
        words += f" ({format_seconds(rung.low_s)}–{format_seconds(rung.high_s)})"
    return words


def ladder_table(document: Tuning) -> Table:
    """The same in figures."""
    rows = [
        (
            rung.name,
            format_seconds(rung.step_s),
            "–"
            if rung.low_s is None or rung.high_s is None
            else f"{format_seconds(rung.low_s)}–{format_seconds(rung.high_s)}",
            _error_at(document, rung),
        )
        for rung in ladder(document)
    ]
    return Table(("after", "step", "its interval", "largest error"), rows)


def _error_at(document: Tuning, rung: Rung) -> str:
    if rung.outcome is not None:
        return facts.error_figure(rung.outcome) or "–"
    numerics = document.numerics
    if rung.name == "baseline" or numerics is None or numerics.max_rel is None:
        return "–"
    return facts.figure_of(numerics.max_rel)


def lever_drawing(document: Tuning) -> Intervals:
    """Each lever that was timed, its error beside its speed."""
    rows = [
        IntervalRow(
            each.label,
            facts.ratio_figure(each),
            each.ratio,
            each.ci_low,
            each.ci_high,
            {"kept": "faster", "slower": "slower"}.get(each.outcome, ""),
            facts.error_words(each.max_rel_error),
        )
        for each in facts.in_order(document)
        if each.ratio is not None and each.ratio > 0
    ]
    return Intervals(rows, plain, 1.0, DIRECTIONS)


def trials(document: Tuning) -> list[Trial]:
    """What took time, in the order in which it was tried."""
    return [
        Trial(each.label, each.outcome, SLOTS[each.outcome], each.elapsed_s)
        for each in document.levers
        if each.outcome in SLOTS and each.elapsed_s > 0
    ]


def time_by_outcome(document: Tuning) -> list[Share]:
    """What the trials of each outcome took, and what was spent beside them."""
    spent: dict[LeverResult, list[Seconds]] = {}
    for each in document.levers:
        if each.outcome in SLOTS and each.elapsed_s > 0:
            spent.setdefault(each.outcome, []).append(each.elapsed_s)
    whole = sum(map(sum, spent.values()))
    return [
        Share(
            name,
            sum(spent[name]) / whole,
            f"{format_seconds(sum(spent[name]))}, {counted(len(spent[name]), 'trial')}",
            SLOTS[name],
        )
        for name in SLOTS
        if name in spent
    ]


def stage_table(document: Tuning) -> Table:
    """Each stage with what it kept and how it was validated."""
    rows = []
    for stage in document.stages:
        numerics = stage.numerics
        error = "" if numerics is None or numerics.max_rel is None else facts.figure_of(numerics.max_rel)
        rows.append(
            (
                stage.stage,
                ", ".join(stage.levers) or "nothing kept",
                f"{significant(1 / stage.ratio)}×" if stage.ratio else "",
                error,
                format_seconds(stage.elapsed_s),
            )
        )
    return Table(("stage", "kept", "faster so far", "largest error", "took"), rows, words=frozenset({1}))


def predicted(document: Tuning) -> list[PredictedLever]:
    """The levers that a finding advised with a gain, and that were timed."""
    return predicted_levers(document.run_id or "", document.target, document.levers)


def prediction_table(levers: Sequence[PredictedLever]) -> Table:
    """Predicted beside measured."""
    rows = [
        (
            lever.lever,
            f"{significant(1 / max(lever.predicted_high, 1e-3))}–{significant(1 / max(lever.predicted_low, 1e-3))}×",
            facts.ratio_words(lever.measured, lever.measured_low, lever.measured_high),
            "held" if lever.held else "missed",
            ", ".join(lever.rules),
        )
        for lever in levers
    ]
    return Table(("lever", "predicted", "measured", "prediction", "finding"), rows, words=frozenset({3, 4}))


def prediction_line(levers: Sequence[PredictedLever]) -> str:
    """How many predictions held."""
    held = sum(lever.held for lever in levers)
    return f"{held} of {counted(len(levers), 'prediction')} held: the measured interval meets the predicted range."


def pasted(document: Tuning) -> str:
    """The recipe as lines of Python; empty where nothing was kept, or a lever is not known here."""
    from pyrometer.tuning.recipe.pasting import python_lines  # levers bring torch along

    if not document.recipe.levers:
        return ""
    try:
        return "\n".join(python_lines(document.recipe.levers, document.kind))
    except InputError:
        return ""  # of a plug-in that is not installed here; the recipe's file holds it


def spent_line(document: Tuning) -> str:
    """How long the whole search took, and how much of it went into trials."""
    inside = sum(trial.elapsed_s for trial in trials(document))
    share = format_percent(inside / document.elapsed_s) if document.elapsed_s > 0 else "–"
    return (
        f"{format_seconds(document.elapsed_s)} in all, {share} of it in trials; "
        "the rest is the baseline, what findings advise, and the confirmation."
    )
