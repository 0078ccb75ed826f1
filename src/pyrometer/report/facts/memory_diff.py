"""Two memory profiles beside each other, in words."""

from __future__ import annotations

from pyrometer.memory.difference import BytesChange, MemoryDiff
from pyrometer.quantity import format_bytes
from pyrometer.report.facts.layout import Fact, Section, Table
from pyrometer.report.facts.trace_words import short_path


def chapters(diff: MemoryDiff) -> list[Section]:
    """The peaks, the categories and the places that changed."""
    facts = [
        Fact(
            "peak",
            f"{format_bytes(diff.before_peak_bytes)} → {format_bytes(diff.after_peak_bytes)}",
            f"{diff.ratio:.3g}×",
        ),
        Fact("falls in", f"{diff.before_phase or 'unknown'} → {diff.after_phase or 'unknown'}"),
        *(Fact("note", note) for note in diff.notes),
    ]
    columns = ("category", "before", "after", "change")
    whole = Section(
        "difference", "Against the earlier profile", facts, Table(columns, _rows(diff.categories))
    )
    places = Table(
        ("allocated at", *columns[1:]), [(short_path(row[0]), *row[1:]) for row in _rows(diff.sites)]
    )
    return [whole, Section("changed", "Places that changed", [], places)] if diff.sites else [whole]


def _rows(changes: list[BytesChange]) -> list[tuple[str, ...]]:
    return [
        (
            change.name,
            format_bytes(change.before_bytes),
            format_bytes(change.after_bytes),
            f"{'+' if change.change_bytes > 0 else ''}{format_bytes(change.change_bytes)}",
        )
        for change in changes
    ]
