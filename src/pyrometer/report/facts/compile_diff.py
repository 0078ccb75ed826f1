"""What changed between two compilations of one program, in words."""

from __future__ import annotations

from pyrometer.compiler.report import CompileDiff
from pyrometer.quantity import format_bytes, format_seconds
from pyrometer.report.facts.compile_breaks import break_place
from pyrometer.report.facts.layout import Fact, Section, Table
from pyrometer.report.facts.trace_words import MOST_LISTED, short, short_path


def chapter(diff: CompileDiff) -> Section:
    """What was added, what went away, which numbers differ."""
    facts = [
        Fact("added", short(graph_break.reason, 90), break_place(graph_break))
        for graph_break in diff.breaks_added
    ]
    facts += [
        Fact("gone", short(graph_break.reason, 90), break_place(graph_break))
        for graph_break in diff.breaks_removed
    ]
    facts += [
        Fact(
            "now skipped", short(frame.reason, 90), f"{short_path(frame.file)}:{frame.line} {frame.function}"
        )
        for frame in diff.skips_added
    ]
    facts += [
        Fact(
            "now at the limit",
            short(limit_reached.reason, 90),
            f"{short_path(limit_reached.file)}:{limit_reached.line}",
        )
        for limit_reached in diff.limits_added
    ]
    body = [
        (change.name, f"{change.before:,}", f"{change.after:,}")
        for change in [*diff.counts, *diff.cache, *diff.guards]
    ]
    body += [
        (change.name, _figure(change.name, change.before), _figure(change.name, change.after))
        for change in diff.costs
    ]
    how = (
        "Lines that only moved are not changes. Times are of one run on each side, and differ by chance, too."
    )
    table = Table(("number", "before", "after"), body[: 2 * MOST_LISTED]) if body else None
    return Section("difference", diff.sentence, facts, table, how)


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return "–"
    if name.endswith("_s"):
        return format_seconds(value)
    return format_bytes(value) if name.endswith("_bytes") else f"{value:g}"
