"""What grew and what shrank between two memory documents, as bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Protocol

from pyrometer.memory.difference import BytesChange, MemoryDiff
from pyrometer.memory.snapshots.difference import CategoryChange, SiteChange, SnapshotDiff
from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc
from pyrometer.report.facts.trace_words import short_path

MOST_CHANGES = 60


class ChangedBytes(Record, frozen=True, kw_only=True):
    """One part, before and after."""

    name: str
    before_bytes: Bytes
    after_bytes: Bytes
    change_bytes: Bytes
    word: Annotated[str, doc("new, gone, grew or shrank")]


class Changes(Record, frozen=True, kw_only=True):
    """Parts of one kind that changed, the largest change first."""

    title: str
    rows: list[ChangedBytes]
    rest_bytes: Annotated[Bytes, doc("sum of the changes that are not listed")] = 0
    num_rest: Annotated[int, doc("how many they are")] = 0


class MemoryChange(Record, frozen=True, kw_only=True):
    """Two memory documents beside each other."""

    before_bytes: Annotated[Bytes, doc("the peak")]
    after_bytes: Bytes
    change_bytes: Bytes
    groups: list[Changes]
    notes: list[str] = []


class _Change(Protocol):
    @property
    def before_bytes(self) -> Bytes: ...
    @property
    def after_bytes(self) -> Bytes: ...


def changes(diff: MemoryDiff | SnapshotDiff) -> MemoryChange:
    """Both kinds of difference in one shape."""
    if isinstance(diff, MemoryDiff):
        return _change(
            diff.before_peak_bytes,
            diff.after_peak_bytes,
            [
                ("By category, at the peak", _named(diff.categories)),
                ("By place, at the peak", _named(diff.sites)),
            ],
            diff.notes,
        )
    return _change(
        diff.peak_before_bytes,
        diff.peak_after_bytes,
        [
            ("By category, at the peak", [(category.category, category) for category in diff.categories]),
            ("By place, at the peak", [(short_path(change.site), change) for change in diff.at_peak]),
            ("By place, at the end", [(short_path(change.site), change) for change in diff.at_end]),
        ],
        diff.notes,
    )


def _named(rows: Iterable[BytesChange]) -> list[tuple[str, BytesChange]]:
    return [(short_path(row.name), row) for row in rows]


def _change(
    before: Bytes,
    after: Bytes,
    groups: Iterable[tuple[str, Sequence[tuple[str, BytesChange | SiteChange | CategoryChange]]]],
    notes: list[str],
) -> MemoryChange:
    made = [_group(title, [_row(name, change) for name, change in rows]) for title, rows in groups]
    return MemoryChange(
        before_bytes=before,
        after_bytes=after,
        change_bytes=after - before,
        groups=[group for group in made if group.rows],
        notes=notes,
    )


def _group(title: str, rows: Sequence[ChangedBytes]) -> Changes:
    ordered = sorted((row for row in rows if row.change_bytes), key=lambda row: -abs(row.change_bytes))
    rest = ordered[MOST_CHANGES:]
    return Changes(
        title=title,
        rows=ordered[:MOST_CHANGES],
        rest_bytes=sum(row.change_bytes for row in rest),
        num_rest=len(rest),
    )


def _row(name: str, one: _Change) -> ChangedBytes:
    change = one.after_bytes - one.before_bytes
    word = (
        "new"
        if not one.before_bytes
        else "gone"
        if not one.after_bytes
        else "grew"
        if change > 0
        else "shrank"
    )
    return ChangedBytes(
        name=name,
        before_bytes=one.before_bytes,
        after_bytes=one.after_bytes,
        change_bytes=change,
        word=word,
    )
