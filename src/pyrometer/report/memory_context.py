"""What the page about memory shows: the ledger as a bar, memory over time, advice as cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyrometer.bench.measurement import Measurement
from pyrometer.evidence.data_share import measured_share, watched_share
from pyrometer.loading.report import LoaderReport
from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.profile import MemoryProfile
from pyrometer.memory.snapshots.report import SnapshotReport
from pyrometer.quantity import Bytes, format_bytes
from pyrometer.report.charts.shares import Share, share_bar
from pyrometer.report.charts.stacked_area import stacked_area
from pyrometer.report.facts import loading as of_loading
from pyrometer.report.facts import memory as of_memory
from pyrometer.report.facts import snapshot as of_snapshot
from pyrometer.report.facts.layout import Section

MOST_ROWS = 25
"""Rows of a table on the page; the document holds more."""

SLOTS: dict[str, int] = dict(zip(CATEGORIES, (2, 6, 4, 8, 0, 1, 3, 7, 9, 5), strict=True))
"""Categories, and their place in the palette."""


def memory_parts(profile: MemoryProfile, sections: Sequence[Section]) -> dict[str, Any]:
    """Fills `memory_sections.html.j2`."""
    warning = _warning(profile, sections)
    return {
        "headline": of_memory.headline(profile),
        "subtitle": of_memory.subtitle(profile),
        "warning": warning,
        **_drawn(profile, [section for section in sections if section is not warning]),
    }


def _warning(profile: MemoryProfile, sections: Sequence[Section]) -> Section | None:
    """The chapter about a leak where it must not be overlooked, and so stands before all others."""
    if profile.leak is None or not profile.leak.unbounded:
        return None
    return next((section for section in sections if section.slug == "leak"), None)


def snapshot_parts(report: SnapshotReport, sections: Sequence[Section]) -> dict[str, Any]:
    """Fills `memory_sections.html.j2` for a snapshot."""
    return {
        "headline": of_snapshot.headline(report),
        "subtitle": of_snapshot.subtitle(report),
        "warning": None,
        **_drawn(report, sections),
    }


def _drawn(found: MemoryProfile | SnapshotReport, sections: Sequence[Section]) -> dict[str, Any]:
    """What pages draw of bytes by category, and the chapters below."""
    shares = ledger_shares(found.ledger_bytes, found.peak_bytes)
    return {
        "advice": found.advice,
        "shares": shares,
        "bar": share_bar(shares, "the peak") if shares else None,
        "area": stacked_area(found.timeline, SLOTS),
        "sections": [section.shortened(MOST_ROWS) for section in sections],
    }


def loading_parts(report: LoaderReport, measurement: Measurement | None) -> dict[str, Any]:
    """Fills the chapter about how the data arrives."""
    told = measured_share(measurement) or watched_share(report)
    return {
        "headline": of_loading.headline(report),
        "apart": of_loading.apart(told),
        "advice": report.advice,
        "sections": [section.shortened(MOST_ROWS) for section in of_loading.sections(report)],
    }


def ledger_shares(ledger: dict[str, Bytes], whole: Bytes) -> list[Share]:
    """A ledger as parts of a bar, in the order of categories."""
    return [
        Share(name, ledger[name] / whole, format_bytes(ledger[name]), SLOTS[name])
        for name in CATEGORIES
        if whole and ledger.get(name)
    ]
