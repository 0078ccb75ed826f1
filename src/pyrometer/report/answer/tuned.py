"""The short answer of a search: what the recipe brings, and what became of the levers."""

from __future__ import annotations

from pyrometer.quantity import counted
from pyrometer.report.answer import trust
from pyrometer.report.answer.measured import named
from pyrometer.report.answer.short import Part, ShortAnswer, Whole
from pyrometer.report.documents import TuneDocument
from pyrometer.report.facts import tuning as facts

MOST_LEVERS = 11


def of_document(document: TuneDocument) -> ShortAnswer:
    """What the recipe brings, and every lever that was run, as far as there is room."""
    told = [each for each in facts.in_order(document) if each.outcome not in {"not applicable", "untried"}]
    rows = [
        Part(each.label, each.outcome, note=facts.ratio_figure(each) or each.reason)
        for each in told[:MOST_LEVERS]
    ]
    alerts = [*(facts.goal_line(goal) for goal in document.targets), *document.notes]
    left = len(told) - len(rows)
    untried = sum(each.outcome == "untried" for each in document.levers)
    limits = [f"{counted(untried, 'lever')} untried"] if untried else []
    return ShortAnswer(
        named(document.target),
        f"{facts.headline(document)} · {facts.step_change(document)}",
        bound=f"recipe: {facts.recipe_line(document)}",
        alerts=alerts,
        whole=Whole(f"Levers tried{f' (and {left} more)' if left > 0 else ''}", "", rows) if rows else None,
        trust=" · ".join(
            part for part in (facts.proof_line(document), facts.numerics_line(document), *limits) if part
        ),
        improve=_next(document, untried),
        tone=document.final.outcome if document.final is not None and document.recipe.levers else "",
    )


def _next(document: TuneDocument, untried: int) -> str:
    if untried or document.interrupted:
        return trust.again(document, "--resume")
    return (
        ""
        if document.recipe.path is None
        else f"pyrometer tune {document.target} --recipe {document.recipe.path} --verify"
    )
