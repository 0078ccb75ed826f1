"""Chapters about findings: what to do, and how the profile was read."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.advice import Advice
from pyrometer.bench.quality import Caveat
from pyrometer.report.chapters.chapter import AdviceCards, Answers, Block, Chapter, FindingCards, Text
from pyrometer.report.documents import EvidenceDocument
from pyrometer.report.facts import findings as of_findings
from pyrometer.report.facts import measurement as of_measurement
from pyrometer.report.facts.finding_views import views
from pyrometer.rules.diagnosis import ReadingStep
from pyrometer.rules.finding import Finding, Suppressed
from pyrometer.text import with_capital


def of_document(document: EvidenceDocument) -> list[Chapter]:
    """What the rules found, behind what must be mended before; nothing where none was asked and nothing failed.

    That no rule found a fault is not said above an observer's own advice, nor of a script in which no step was seen.
    """
    diagnosis, m, script = document.diagnosis, document.evidence.measurement, document.evidence.script
    first = of_measurement.mending(m) if m is not None else None
    observers = (document.evidence.memory, document.evidence.snapshot)
    unseen = m is None and script is not None
    if (
        not diagnosis.findings
        and first is None
        and (unseen or any(part and part.advice for part in observers))
    ):
        return []
    if diagnosis.findings or diagnosis.reading or diagnosis.num_rules:
        return [_chapter(diagnosis.findings, diagnosis.suppressed, first, document.target)]
    return [] if first is None else [Chapter("findings", "What to do first", [FindingCards([], first)])]


def _chapter(
    findings: Sequence[Finding], suppressed: Sequence[Suppressed], first: Caveat | None, target: str
) -> Chapter:
    said = of_findings.headline(findings)
    blocks: list[Block] = (
        [FindingCards(views(findings, target), first)] if findings or first is not None else []
    )
    hidden = of_findings.suppressed_text(suppressed)
    blocks += [Text(f"{hidden}.")] if hidden else []
    if not findings:
        lead = [f"{with_capital(said)}."]
        return Chapter("findings", "Findings", blocks, "overview findings", lead=lead, place="story")
    same = sum(bool(finding.overlaps) for finding in findings)
    lead = [f"{same} of the {len(findings)} cards count the same cost as one above them."] if same else []
    return Chapter("findings", with_capital(said), blocks, "findings", lead=lead)


def advice_cards(
    title: str, advice: Sequence[Advice], findings: Sequence[Finding], pages: str
) -> list[Chapter]:
    """The advice of an observer that no finding gives."""
    given = {finding.advice.slug for finding in findings}
    rest = [item for item in advice if item.slug not in given]
    slug = title.lower().replace(" ", "-")
    return [Chapter(slug, title, [AdviceCards(rest)], pages, label="Advice")] if rest else []


def reading(steps: Sequence[ReadingStep]) -> list[Chapter]:
    """The profile, question by question."""
    if not steps:
        return []
    reading_section = of_findings.reading_section(steps)
    blocks = (
        [Answers(reading_section.table, [step.verdict for step in steps])]
        if reading_section.table is not None
        else []
    )
    return [
        Chapter(
            reading_section.slug,
            reading_section.title,
            blocks,
            "findings",
            how=reading_section.how,
            change=reading_section.change,
        )
    ]
