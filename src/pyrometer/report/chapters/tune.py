"""What `pyrometer tune` tells."""

from __future__ import annotations

from pyrometer.report.chapters.chapter import Answer, Chapter, Facts, Rows, Text, Told
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.documents import TuneDocument
from pyrometer.report.facts import tuning as facts


def tell(document: TuneDocument) -> Told:
    """What the recipe brings, every lever beside its error and price, and what was left out."""
    outcome = document.final.outcome if document.final is not None and document.recipe.levers else ""
    answer = Answer(
        f"{facts.headline(document)} · {facts.step_change(document)}",
        facts.recipe_line(document),
        tone=outcome,
        cautions=document.notes,
    )
    how = (
        "Each lever was tried in a process of its own against the best configuration at that moment; the ratio is that of paired blocks. "
        "The first figure of the report is the whole recipe against the program as it is, in fresh processes on fresh inputs."
    )
    change = "Another machine, other shapes of inputs, or other versions: `pyrometer tune --verify` proves the recipe again."
    chapters = [
        Chapter(
            "levers", "Levers", [Rows(facts.lever_table(document), is_whole=True)], how=how, change=change
        )
    ]
    if document.targets:
        chapters.insert(0, Chapter("goals", "Goals", [Facts(facts.goal_facts(document))]))
    line = facts.numerics_line(document)
    if line:
        chapters.append(Chapter("numerics", "Numerics", [Text(line)]))
    left_out = facts.left_out_table(document)
    if left_out.rows:
        chapters.append(Chapter("left-out", "Not tried", [Rows(left_out, is_whole=True)]))
    chapters += machine(document.environment)
    return Told(answer, chapters + provenance(document, document.environment))
