"""Chapters about how the data arrives."""

from __future__ import annotations

from pyrometer.loading.report import LoaderReport
from pyrometer.report.chapters.chapter import AdviceCards, Chapter, chapter_of
from pyrometer.report.facts import loading as of_loading


def chapters(report: LoaderReport) -> list[Chapter]:
    """The answer, what would bring the data sooner, and the pipeline."""
    told = [
        Chapter("data-part", "Data", pages="data", says=of_loading.headline(report), label="Data", place="part")
    ]  # fmt: skip
    if report.advice:
        told.append(
            Chapter("what-would-bring-the-data-sooner", "What would bring the data sooner", [AdviceCards(report.advice)], "data", label="Advice")
        )  # fmt: skip
    return told + [chapter_of(section, "data") for section in of_loading.sections(report)]
