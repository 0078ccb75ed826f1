"""What `pyrometer memory` tells of targets and snapshots, and a check of its memory."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.profile import MemoryProfile
from pyrometer.memory.snapshots.report import SnapshotReport
from pyrometer.quantity import Bytes, format_bytes
from pyrometer.report.chapters import findings
from pyrometer.report.chapters.chapter import (
    Alerts,
    Answer,
    Block,
    Chapter,
    Chart,
    Facts,
    Shares,
    Told,
    chapter_of,
)
from pyrometer.report.chapters.surroundings import machine, provenance
from pyrometer.report.charts.shares import Share
from pyrometer.report.documents import CheckDocument, MemoryDocument, SnapshotDocument
from pyrometer.report.facts import memory as of_memory
from pyrometer.report.facts import snapshot as of_snapshot
from pyrometer.report.facts.layout import Section
from pyrometer.rules.finding import Finding

SLOTS: dict[str, int] = dict(zip(CATEGORIES, (2, 6, 4, 8, 0, 1, 3, 7, 9, 5), strict=True))
"""Categories, and their place in the palette."""

COMPARED = frozenset({"difference", "changed", "grown"})
AREA_HOW = (
    "Each step to the right is some allocations and frees, not time. The height is what is alive; the colours are those of the bar above."
)  # fmt: skip


def tell(document: MemoryDocument) -> Told:
    """The answer, the parts of the peak, what would lower it, then chapter after chapter."""
    answer = Answer(of_memory.headline(document.profile), of_memory.subtitle(document.profile))
    sections = of_memory.document_sections(document)
    chapters = [*_over(document.over_limit), *findings.of_document(document)]
    chapters += [
        *machine(document.environment),
        *_chapters(document.profile, sections, document.diagnosis.findings),
    ]
    return Told(answer, chapters + provenance(document, document.environment))


def tell_snapshot(document: SnapshotDocument) -> Told:
    """Why memory ran out, how it was fragmented, who held it."""
    answer = Answer(of_snapshot.headline(document.report), of_snapshot.subtitle(document.report))
    sections = of_snapshot.document_sections(document)
    chapters = [*_over(document.over_limit), *findings.of_document(document)]
    chapters += _chapters(document.report, sections, document.diagnosis.findings)
    return Told(answer, chapters + provenance(document, None))


def of_check(document: CheckDocument) -> list[Chapter]:
    """What a check saw of memory."""
    profile = document.evidence.memory
    if profile is None:
        return []
    answer = Chapter(
        "memory-part", "Memory", pages="memory", says=of_memory.headline(profile), lead=[of_memory.subtitle(profile)], label="Peak",
        place="part",
    )  # fmt: skip
    return [
        answer,
        *_chapters(profile, of_memory.of_check(document), document.diagnosis.findings, overview=""),
    ]


def _over(lines: Sequence[str]) -> list[Chapter]:
    return [Chapter("limit", "Over the limit", [Alerts(lines)], place="card")] if lines else []


def _chapters(
    found: MemoryProfile | SnapshotReport,
    sections: Sequence[Section],
    given: Sequence[Finding],
    overview: str = "overview ",
) -> list[Chapter]:
    shares = ledger_shares(found.ledger_bytes, found.peak_bytes)
    bar: list[Block] = [Shares(shares, "the peak")] if shares else []
    if found.timeline.total_bytes:
        bar.append(Chart("live-bytes", found.timeline, "Live bytes, allocation after allocation", AREA_HOW, pages="memory"))  # fmt: skip
    warning = _warning(found, sections)
    chapters = [_warned(warning, f"{overview}memory")] if warning is not None else []
    if bar:
        chapters.append(Chapter("ledger-bar", "Where the bytes go", bar, f"{overview}memory", label="Bytes"))
    chapters += findings.advice_cards("What would lower it", found.advice, given, f"{overview}memory")
    return chapters + [
        chapter_of(section, "comparison" if section.slug in COMPARED else "memory")
        for section in sections
        if section is not warning
    ]


def _warning(found: MemoryProfile | SnapshotReport, sections: Sequence[Section]) -> Section | None:
    """The chapter about a leak where it must not be overlooked, and so stands before all others."""
    leak = getattr(found, "leak", None)  # of a profile; a snapshot has none
    if leak is None or not leak.unbounded:
        return None
    return next((section for section in sections if section.slug == "leak"), None)


def _warned(section: Section, pages: str) -> Chapter:
    blocks: list[Block] = [Alerts([section.facts[0].value]), Facts(section.facts[1:])]
    return Chapter(section.slug, section.title, blocks, pages, how=section.how, place="card")


def ledger_shares(ledger: dict[str, Bytes], whole: Bytes) -> list[Share]:
    """A ledger as parts of a bar, in the order of categories."""
    return [
        Share(name, ledger[name] / whole, format_bytes(ledger[name]), SLOTS[name])
        for name in CATEGORIES
        if whole and ledger.get(name)
    ]
