"""Chapters about how the data arrives."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.loading.report import LoaderReport
from pyrometer.report.chapters.chapter import Chapter, chapter_of
from pyrometer.report.chapters.findings import advice_cards
from pyrometer.report.facts import loading as of_loading
from pyrometer.rules.finding import Finding


def chapters(report: LoaderReport, findings: Sequence[Finding]) -> list[Chapter]:
    """The answer, what would bring the data sooner beside what findings say, and the pipeline."""
    told = [
        Chapter("data-part", "Data", pages="data", says=of_loading.headline(report), label="Data", place="part"),
        *advice_cards("What would bring the data sooner", report.advice, findings, "data"),
    ]  # fmt: skip
    return told + [chapter_of(section, "data") for section in of_loading.sections(report)]
