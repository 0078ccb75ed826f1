"""The short answer of a search: what the recipe brings, and what became of the levers."""

from __future__ import annotations

import math
import shlex
from collections import Counter

from msgspec.structs import replace

from pyrometer.quantity import format_seconds
from pyrometer.report.answer import trust
from pyrometer.report.answer.measured import named
from pyrometer.report.answer.short import Part, ShortAnswer, Whole
from pyrometer.report.facts import tuning as facts
from pyrometer.tuning.outcome import Goal, LeverOutcome, Tuning

ENOUGH = 5
"""Times what was spent before the first lever: for some levers and the confirmation."""


def of_document(document: Tuning) -> ShortAnswer:
    """What the recipe brings, and every lever that was run, as far as there is room."""
    rows = [
        Part(each.label, each.outcome, note=_note(each))
        for each in facts.in_order(document)
        if _was_run(each)
    ]
    return ShortAnswer(
        named(document.target),
        f"{facts.headline(document)} · {facts.step_change(document)}",
        bound=f"Recipe: {facts.recipe_line(document)}",
        goals=[_goal(goal) for goal in document.targets],
        alerts=document.notes,
        whole=Whole(_title(document), "", rows),
        trust=" · ".join(part for part in (facts.proof_line(document), facts.error_line(document)) if part),
        improve=_next(document),
        tone=document.final.outcome if document.final is not None and document.recipe.levers else "",
    )


def _was_run(each: LeverOutcome) -> bool:
    return each.outcome not in {"not applicable", "untried"}


def _title(document: Tuning) -> str:
    """How many levers were tried, and how many were not, by why; of a recipe that was proved again, how long that took."""
    if not document.levers:
        done = "Applied" if document.applied is not None else "Proved again" if document.final else "Done"
        return f"{done} in {format_seconds(document.elapsed_s)}"
    counts = Counter(each.outcome for each in document.levers)
    said = [f"{sum(map(_was_run, document.levers))} tried in {format_seconds(document.elapsed_s)}"]
    said += [f"{counts['untried']} not reached"] if counts["untried"] else []
    said += [f"{counts['not applicable']} do not fit"] if counts["not applicable"] else []
    return f"Levers: {', '.join(said)}"


def _note(each: LeverOutcome) -> str:
    """Its ratio with the error; why it was not timed otherwise."""
    ratio = facts.ratio_figure(each)
    if not ratio:
        return each.reason
    if each.outcome == "kept":
        return ratio if each.max_rel_error is None else f"{ratio}, err {_rough(each.max_rel_error)}"
    if each.reason.startswith(("was kept", "faster, but")):
        return each.reason
    return ratio.replace(" slower", "")  # the outcome beside it says so


def _rough(error: float) -> str:
    """An error in as few characters as there is room for.

    >>> _rough(0.0), _rough(1.234e-5)
    ('0', '1e-05')
    """
    return f"{error:.0e}" if error else "0"


def _goal(goal: Goal) -> str:
    left = f": {goal.left}" if goal.left and not goal.met else ""
    return f"{facts.goal_words(goal)}{left}"


def _next(document: Tuning) -> str:
    """The command to go on with."""
    untried = any(each.outcome == "untried" for each in document.levers)
    if untried or document.interrupted:
        words = [word for word in document.command or () if word not in {"--json", "--resume"}]
        longer = f"{math.ceil(ENOUGH * document.elapsed_s / 60)}m"
        flags = ("--budget", longer) if facts.is_too_short(document) else ("--resume",)
        return trust.again(replace(document, command=words), *flags)
    if document.recipe.path is None or not document.recipe.levers:
        return ""
    command = list(document.command or ())
    arguments = command[command.index("--") :] if "--" in command else []  # of a script
    again = ["pyrometer", "tune", document.target, "--recipe", document.recipe.path, "--verify", *arguments]
    return shlex.join(again)
