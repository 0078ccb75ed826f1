"""What `pyrometer compile` tells, and a check of what torch.compile did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyrometer.compiler.report import CompileReport
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.report.chapters import findings
from pyrometer.report.chapters.chapter import (
    Alerts,
    Answer,
    BreakCards,
    Chapter,
    Chart,
    Facts,
    Shares,
    Told,
    chapter_of,
)
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.charts.shares import Share
from pyrometer.report.documents import CompileDocument
from pyrometer.report.facts import compile as of_compile
from pyrometer.report.facts import compile_breaks
from pyrometer.report.facts.compile_kernels import kernel_section
from pyrometer.report.facts.layout import Section

OWN_SLOTS = (0, 1, 2, 3, 4, 6, 7, 8)
"""Colours of the longest phases, each of which has one of its own."""

REST, REST_SLOT = "other phases", 9
"""All others are one part."""

WHOLE_SLOT = 5
"""Colour of what is no phase, such as a whole compilation."""


def tell(document: CompileDocument) -> Told:
    """The answer, the breaks with what to write instead, then chapter after chapter."""
    answer = Answer(of_compile.document_headline(document), of_compile.subtitle(document.report))
    chapters = []
    if document.over_budget:
        chapters.append(Chapter("budget", "Over the budget", [Alerts(document.over_budget)], place="card"))
    chapters += findings.of_document(document) + machine(document.environment, "Compiled on")
    chapters += _chapters(document.report, of_compile.document_sections(document), overview="overview ")
    return Told(answer, chapters + provenance(document, document.environment))


def of_check(report: CompileReport) -> list[Chapter]:
    """What a check saw of torch.compile."""
    answer = Chapter(
        "compile", "torch.compile", pages="compile", says=of_compile.headline(report), lead=[of_compile.subtitle(report)],
        place="part",
    )  # fmt: skip
    return [answer, *_chapters(report, of_compile.sections(report), overview="")]


def _chapters(report: CompileReport, sections: Sequence[Section], overview: str) -> list[Chapter]:
    kernels = kernel_section(report)
    cards = compile_breaks.cards(report)
    chapters = []
    if cards:
        chapters.append(
            Chapter(
                "breaks", "Graph breaks, and what to write instead", [BreakCards(cards, len(report.breaks))], f"{overview}compile",
                label="Breaks",
            )
        )  # fmt: skip
    return chapters + [
        _chapter(section, report, overview) for section in [*sections, *([kernels] if kernels else [])]
    ]


def _chapter(section: Section, report: CompileReport, overview: str) -> Chapter:
    if section.slug == "difference":
        return chapter_of(section, "comparison")
    if section.slug == "graphs":
        chapter = chapter_of(section, "compile")
        return chapter._replace(blocks=[*chapter.blocks, Chart("graphs", report)])
    if section.slug != "compiling":
        return chapter_of(section, "compile")
    shares = _phases(report)
    blocks = [Facts(section.facts), *([Shares(shares, "the time that compiling took", "compiling-bar")] if shares else [])]  # fmt: skip
    drawn = Chart("compiling-steps", report, "Inside the compiler", pages="compile")
    return chapter_of(section, f"{overview}compile", blocks=[*blocks, drawn])


def phase_slots(phases_s: Mapping[str, Seconds]) -> dict[str, int]:
    """Colours of the phases that have one of their own, the longest first; all others share `REST_SLOT`.

    >>> phase_slots({"guards": 0.5, "lowering": 2.0, "autotuning": 0.0})
    {'lowering': 0, 'guards': 1}
    """
    longest = sorted((name for name in phases_s if phases_s[name] > 0), key=lambda name: -phases_s[name])
    return dict(zip(longest, OWN_SLOTS, strict=False))


def _phases(report: CompileReport) -> list[Share]:
    phases_s = report.cost.phases_s
    total = sum(phases_s.values())
    slots = phase_slots(phases_s)
    shares = [
        Share(name, phases_s[name] / total, format_seconds(phases_s[name]), slot)
        for name, slot in slots.items()
    ]
    rest = sum(spent for name, spent in phases_s.items() if name not in slots)
    return [*shares, Share(REST, rest / total, format_seconds(rest), REST_SLOT)] if rest else shares
