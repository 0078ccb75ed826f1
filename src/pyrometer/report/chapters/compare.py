"""What `pyrometer compare` tells."""

from __future__ import annotations

from pyrometer.report.chapters.chapter import (
    Answer,
    Chapter,
    Code,
    Figures,
    Rows,
    Text,
    Told,
)
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.facts import comparison as of_comparison
from pyrometer.report.facts import recipes as of_recipes
from pyrometer.report.facts.layout import Section
from pyrometer.report.history_documents import CompareDocument
from pyrometer.tuning.recipe.comparing import RecipeComparison

SAME_CODE = (
    "Nothing to compare: both runs are of the same code, so that what differs between them is the machine's."
)

LEVERS_HOW = "Each ratio is against the best configuration of its own search at that moment, each error against its baseline."


def tell(document: CompareDocument) -> Told:
    """What two stored runs took, why that is no verdict, and what changed between them."""
    comparison = document.comparison
    if document.recipes is not None:
        return _tell_recipes(document, document.recipes)
    figures = of_comparison.top_figures(comparison)
    how = (
        "Each run's own figures, taken at its own moment; an interval tells how well a median is known. Medians whose intervals overlap are "
        "not told apart."
    )
    measured = Rows(of_comparison.figure_table(comparison), "Figures of both", is_whole=True)
    sides = Rows(of_comparison.side_table(comparison), "The two runs", is_whole=True)
    changed = [_changed(section) for section in of_comparison.sections(comparison)]
    chapters = machine(comparison.environment)
    if figures:
        chapters.append(Chapter("figures", "What changed", [Figures(figures)], place="quiet"))
    chapters.append(Chapter("proof", "To prove a difference", [_proof(comparison.prove_with)]))
    chapters += [chapter for chapter in changed if chapter.slug == "findings"]
    chapters.append(Chapter("measured", "Figures of both", [measured], "overview comparison", how=how))
    chapters.append(Chapter("sides", "The two runs", [sides]))
    chapters += [chapter for chapter in changed if chapter.slug != "findings"]
    rests = provenance(document, comparison.environment, of_comparison.provenance_facts(comparison))
    return Told(
        Answer(
            of_comparison.headline(comparison), comparison.note, cautions=of_comparison.cautions(comparison)
        ),
        chapters + rests,
    )


def _tell_recipes(document: CompareDocument, recipes: RecipeComparison) -> Told:
    """Two searches of one model."""
    comparison = document.comparison
    chapters = [
        Chapter("recipes", "Both recipes", [Rows(of_recipes.side_table(recipes), is_whole=True)]),
        Chapter("levers", "Levers", [Rows(of_recipes.lever_table(recipes), is_whole=True)], how=LEVERS_HOW),
        Chapter("sides", "The two runs", [Rows(of_comparison.side_table(comparison), is_whole=True)]),
        *machine(comparison.environment),
        *provenance(document, comparison.environment, of_comparison.provenance_facts(comparison)),
    ]
    return Told(Answer(of_recipes.headline(recipes), of_recipes.NOTE, leading=2), chapters)


def _proof(command: str | None) -> Code | Text:
    return Text(SAME_CODE) if command is None else Code(command)


def _changed(section: Section) -> Chapter:
    pages = "overview comparison" if section.slug == "findings" else "comparison"
    rows = [Rows(section.table, is_whole=True)] if section.table is not None else []
    return Chapter(section.slug, section.title, rows, pages, how=section.how)
