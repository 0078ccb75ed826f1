"""Chapters about findings: what to do, and how the profile was read."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.bench.measurement import Measurement
from pyrometer.report.chapters.chapter import Answers, Block, Chapter, FindingCards, Text
from pyrometer.report.documents import EvidenceDocument
from pyrometer.report.facts import findings as of_findings
from pyrometer.report.facts import measurement as of_measurement
from pyrometer.report.facts.finding_views import views
from pyrometer.rules.diagnosis import ReadingStep
from pyrometer.rules.finding import Finding, Suppressed


def mending(m: Measurement | None) -> list[Chapter]:
    """What must be done first where the program failed and no rule was asked."""
    first = of_measurement.mending(m) if m is not None else None
    return [] if first is None else [Chapter("findings", "What to do first", [FindingCards([], first)])]


def chapter(
    findings: Sequence[Finding], suppressed: Sequence[Suppressed] = (), m: Measurement | None = None
) -> Chapter:
    """All findings, the most rewarding first, behind what must be mended before any of them."""
    first = of_measurement.mending(m) if m is not None else None
    said = of_findings.headline(findings)
    blocks: list[Block] = [FindingCards(views(findings), first)] if findings or first is not None else []
    hidden = of_findings.suppressed_text(suppressed)
    blocks += [Text(f"{hidden}.")] if hidden else []
    if not findings:
        return Chapter("findings", "Findings", blocks, "overview findings", lead=[f"{_capital(said)}."])
    same = sum(bool(finding.overlaps) for finding in findings)
    lead = [f"{same} of the {len(findings)} cards count the same cost as one above them."] if same else []
    return Chapter("findings", _capital(said), blocks, "findings", lead=lead)


def where_any(document: EvidenceDocument) -> list[Chapter]:
    """The findings of a document whose subject is something else; nothing where there are none."""
    return [chapter(document.findings, document.suppressed)] if document.findings else []


def reading(steps: Sequence[ReadingStep]) -> list[Chapter]:
    """The profile, question by question."""
    if not steps:
        return []
    told = of_findings.reading_section(steps)
    blocks = [Answers(told.table, [step.verdict for step in steps])] if told.table is not None else []
    return [Chapter(told.slug, told.title, blocks, "findings", how=told.how, change=told.change)]


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
