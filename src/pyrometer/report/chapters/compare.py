"""What `pyrometer compare` tells."""

from __future__ import annotations

from pyrometer.report.chapters.chapter import (
    Answer,
    Chapter,
    Code,
    Figures,
    Rows,
    Told,
)
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.facts import comparison as of_comparison
from pyrometer.report.facts.layout import Section
from pyrometer.report.run_documents import CompareDocument


def tell(document: CompareDocument) -> Told:
    """What two stored runs took, why that is no verdict, and what changed between them."""
    found = document.comparison
    figures = of_comparison.top_figures(found)
    how = (
        "Each run's own figures, taken at its own moment; an interval tells how well a median is known. Medians whose intervals overlap are "
        "not told apart."
    )
    measured = Rows(of_comparison.figure_table(found), "Figures of both", is_whole=True)
    sides = Rows(of_comparison.side_table(found), "The two runs", is_whole=True)
    changed = [_changed(section) for section in of_comparison.sections(found)]
    told = machine(found.environment)
    if figures:
        told.append(Chapter("figures", "What changed", [Figures(figures)], place="quiet"))
    told.append(Chapter("proof", "To prove a difference", [Code(found.prove_with)]))
    told += [one for one in changed if one.slug == "findings"]
    told.append(Chapter("measured", "Figures of both", [measured], "overview comparison", how=how))
    told.append(Chapter("sides", "The two runs", [sides]))
    told += [one for one in changed if one.slug != "findings"]
    rests = provenance(document, found.environment, of_comparison.provenance_facts(found))
    return Told(
        Answer(of_comparison.headline(found), found.note, cautions=of_comparison.cautions(found)),
        told + rests,
    )


def _changed(section: Section) -> Chapter:
    pages = "overview comparison" if section.slug == "findings" else "comparison"
    rows = [Rows(section.table, is_whole=True)] if section.table is not None else []
    return Chapter(section.slug, section.title, rows, pages, how=section.how)
