"""What `pyrometer tune` tells."""

from __future__ import annotations

from pyrometer.report.chapters.chapter import (
    Answer,
    Block,
    Chapter,
    Chart,
    Code,
    Facts,
    Figures,
    Rows,
    Shares,
    Text,
    Told,
)
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.facts import tuning as facts
from pyrometer.report.facts import tuning_course as course
from pyrometer.tuning.outcome import Tuning

LADDER_HOW = (
    "Each rung adds one lever to those above it; its time is the baseline's times the ratios so far, with their intervals. "
    "The last rung is the whole recipe against the program as it is, in fresh processes on fresh inputs: that figure counts."
)
LEVERS_HOW = (
    "Each lever was tried in a process of its own against the best configuration at that moment; the ratio is that of paired blocks. "
    "The error is the largest difference to the baseline over the largest value of its tensor."
)
CHANGE = (
    "Another machine, other shapes of inputs, or other versions: then prove the recipe again, with --verify."
)
COURSE_HOW = "Trials from left to right, each as wide as the time that it took."


def tell(document: Tuning) -> Told:
    """What the recipe brings, every lever beside its error and price, and what was left out."""
    outcome = document.final.outcome if document.final is not None and document.recipe.levers else ""
    answer = Answer(
        f"{facts.headline(document)} · {facts.step_change(document)}",
        facts.recipe_line(document),
        tone=outcome,
        cautions=document.notes,
    )
    chapters = [Chapter("figures", "What it brings", [Figures(facts.top_figures(document))], place="quiet")]
    if document.targets:
        chapters.append(Chapter("goals", "Goals", [Facts(facts.goal_facts(document))]))
    chapters += [*_ladder(document), *_recipe(document), *_levers(document), *_predictions(document)]
    chapters += [*_stages(document), *_course(document)]
    left_out = facts.left_out_table(document)
    if left_out.rows:
        chapters.append(Chapter("left-out", "Not tried", [Rows(left_out, is_whole=True)]))
    chapters += machine(document.environment)
    return Told(answer, chapters + provenance(document, document.environment))


def _ladder(document: Tuning) -> list[Chapter]:
    drawing = course.ladder_drawing(document)
    if not drawing.rows:
        return []
    blocks: list[Block] = [
        Chart("intervals", drawing),
        Rows(course.ladder_table(document), "Step by step", "The same in figures", is_whole=True),
    ]
    return [Chapter("ladder", "From the baseline to the recipe", blocks, how=LADDER_HOW, change=CHANGE)]


def _recipe(document: Tuning) -> list[Chapter]:
    code = course.pasted(document)
    if not code:
        return []
    blocks: list[Block] = [Code(code)]
    if document.recipe.path is not None:
        said = "The recipe's file applies the same, with its proof:"
        blocks += [Text(said), Code(facts.apply_command(document.recipe, document.target))]
    return [Chapter("recipe", "Lines to paste", blocks)]


def _levers(document: Tuning) -> list[Chapter]:
    drawing = course.lever_drawing(document)
    blocks: list[Block] = [Chart("intervals", drawing)] if drawing.rows else []
    blocks.append(Rows(facts.lever_table(document), is_whole=True))
    return [Chapter("levers", "Levers", blocks, how=LEVERS_HOW)]


def _predictions(document: Tuning) -> list[Chapter]:
    levers = course.predicted(document)
    if not levers:
        return []
    blocks: list[Block] = [
        Rows(course.prediction_table(levers), is_whole=True),
        Text(course.prediction_line(levers)),
    ]
    return [Chapter("predictions", "Predicted and measured", blocks)]


def _stages(document: Tuning) -> list[Chapter]:
    if not document.stages:
        return []
    return [Chapter("stages", "Stages", [Rows(course.stage_table(document), is_whole=True)])]


def _course(document: Tuning) -> list[Chapter]:
    trials = course.trials(document)
    if not trials:
        return []
    blocks: list[Block] = [
        Chart("trials", trials),
        Shares(course.time_by_outcome(document), "the time of all trials"),
        Text(course.spent_line(document)),
    ]
    return [Chapter("search", "The search", blocks, how=COURSE_HOW)]
