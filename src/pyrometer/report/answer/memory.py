"""Short answers about memory: of a program, and of an allocator's snapshot."""

from __future__ import annotations

from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.profile import UNDECIDED_GROWTH, MemoryProfile
from pyrometer.memory.snapshots.report import SnapshotReport
from pyrometer.quantity import format_bytes, format_percent
from pyrometer.report.answer import asked, fixes, parts, trust
from pyrometer.report.answer.measured import named
from pyrometer.report.answer.short import ShortAnswer, Whole
from pyrometer.report.documents import MemoryDocument, SnapshotDocument
from pyrometer.report.facts import memory as of_memory
from pyrometer.report.facts import snapshot as of_snapshot

TITLE = "What holds the peak"
LEAK_STEPS = "200"
"""Enough to tell growth from warm-up."""


def of_program(document: MemoryDocument) -> ShortAnswer:
    """The peak, what it consists of, and what would lower it."""
    profile, findings = document.profile, document.diagnosis.findings
    meant = [*fixes.of_findings(findings), *fixes.of_advice(profile.advice, findings)]
    question = [
        section for section in of_memory.document_sections(document) if section.slug in _asked(document)
    ]
    whole = asked.whole_of(question[0]) if question else _ledger(profile)
    return ShortAnswer(
        named(document.target),
        of_memory.headline(profile, growth_first=True),
        bound=of_memory.watched_words(profile) or _largest(profile),
        alerts=[*document.over_limit, *_open_growth(profile)],
        fixes=meant,
        whole=whole,
        trust=_trust(profile),
        improve=trust.again(document, "--leaks", LEAK_STEPS) if _is_open(profile) else "",
    )


def _is_open(profile: MemoryProfile) -> bool:
    """Whether more steps would tell more about growth."""
    return profile.leak is None or profile.leak.verdict == UNDECIDED_GROWTH


def _open_growth(profile: MemoryProfile) -> list[str]:
    """Where what grows is made that the program may yet let go: no finding speaks of it."""
    leak = profile.leak
    if leak is None or leak.verdict != UNDECIDED_GROWTH or not leak.sites:
        return []
    site = leak.sites[0]
    held = f", held by {site.holder}" if site.holder else ""
    return [f"{named(f'{site.file}:{site.line}')} makes what stays{held}"] if site.file else []


def _asked(document: MemoryDocument) -> list[str]:
    """Chapters that answer what a flag asked for."""
    answers = {
        "difference": document.diff is not None,
        "plan": document.plan is not None,
        "predicted": bool(document.what_if),
        "fits": trust.has_flag(document, "--fit"),  # some sizes are always looked at
    }
    return [slug for slug, there in answers.items() if there]


def of_snapshot_file(document: SnapshotDocument) -> ShortAnswer:
    """Why memory ran out, or how it was used at the peak."""
    report, findings = document.report, document.diagnosis.findings
    meant = [*fixes.of_findings(findings), *fixes.of_advice(report.advice, findings)]
    whole = asked.whole_of(of_snapshot.document_sections(document)[0]) if document.diff is not None else None
    return ShortAnswer(
        named(document.target),
        of_snapshot.headline(report),
        bound=of_snapshot.subtitle(report),
        alerts=document.over_limit,
        fixes=meant,
        whole=whole or _ledger(report),
        trust="read from the allocator's own record",
    )


def _ledger(found: MemoryProfile | SnapshotReport) -> Whole | None:
    if not found.peak_bytes:
        return None
    held = [(name, found.ledger_bytes.get(name, 0) / found.peak_bytes) for name in CATEGORIES]
    return parts.of_bytes(held, found.peak_bytes, TITLE)


def _largest(profile: MemoryProfile) -> str:
    """The category that holds most of the peak, and the line that holds most of that."""
    most = max(profile.ledger_bytes, key=lambda name: profile.ledger_bytes[name], default="")
    held = [place for place in profile.at_peak if place.category == most and place.site]
    largest = max(held, key=lambda place: place.bytes, default=None)
    if largest is None:
        return of_memory.subtitle(profile)
    whole = f"{format_bytes(profile.ledger_bytes[most])} of {most}"
    return f"{whole}, of which {format_bytes(largest.bytes)} come from {named(largest.site)}"


def _trust(profile: MemoryProfile) -> str:
    said = [f"from {profile.source}" if profile.source else "recorded"]
    if profile.predicted is not None and profile.predicted.error is not None:
        said.append(f"predicted within {format_percent(abs(profile.predicted.error), 2)}")
    if profile.leak is None:
        said.append("not watched for leaks")
    return " · ".join(said)
