"""Compare two snapshots: who holds more, who holds less, who is new, who is gone."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.memory.place import HeldBytes
from pyrometer.memory.snapshots.report import Fragmentation, SnapshotReport
from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class SiteChange(Record, frozen=True, kw_only=True):
    """One site in both."""

    site: str
    change: Literal["grew", "shrank", "new", "gone"]
    before_bytes: Bytes
    after_bytes: Bytes
    difference_bytes: Bytes
    before_count: int
    after_count: int
    category: str | None = None


class CategoryChange(Record, frozen=True, kw_only=True):
    """One category at both peaks."""

    category: str
    before_bytes: Bytes
    after_bytes: Bytes
    difference_bytes: Bytes


class FragmentationChange(Record, frozen=True, kw_only=True):
    """Fragmentation at one instant of both."""

    before: Fragmentation | None
    after: Fragmentation | None
    inactive_split_difference_bytes: Bytes = 0
    cached_whole_difference_bytes: Bytes = 0
    unused_difference: Annotated[float, doc("of 1 − allocated / reserved")] = 0.0


class SnapshotDiff(Record, frozen=True, kw_only=True):
    """What changed from one snapshot to another; of each, the device with the highest peak."""

    before_path: str
    after_path: str
    peak_before_bytes: Bytes
    peak_after_bytes: Bytes
    peak_difference_bytes: Bytes
    reserved_difference_bytes: Annotated[Bytes, doc("of the peaks of reserved bytes")]
    at_peak: Annotated[
        list[SiteChange], doc("who held the peak, largest change first; unchanged sites left out")
    ]
    at_end: Annotated[
        list[SiteChange], doc("who held memory at the end: what grows between two dumps may leak")
    ]
    categories: list[CategoryChange]
    fragmentation_at_peak: FragmentationChange
    fragmentation_at_end: FragmentationChange
    failed_requests: Annotated[tuple[int, int], doc("requests that failed, before and after")]
    notes: Annotated[list[str], doc("what keeps the two from being compared fully")] = []


def diff_snapshots(a: SnapshotReport, b: SnapshotReport) -> SnapshotDiff:
    """Compare two reports, from `a` to `b`."""
    ours, theirs = a.fragmentation, b.fragmentation
    return SnapshotDiff(
        before_path=a.path,
        after_path=b.path,
        peak_before_bytes=a.peak_bytes,
        peak_after_bytes=b.peak_bytes,
        peak_difference_bytes=b.peak_bytes - a.peak_bytes,
        reserved_difference_bytes=b.peak_reserved_bytes - a.peak_reserved_bytes,
        at_peak=_sites(a.at_peak, b.at_peak),
        at_end=_sites(a.at_end, b.at_end),
        categories=_categories(a.ledger_bytes, b.ledger_bytes),
        fragmentation_at_peak=_fragmentation(ours.at_peak, theirs.at_peak),
        fragmentation_at_end=_fragmentation(ours.at_end, theirs.at_end),
        failed_requests=(len(a.oom), len(b.oom)),
        notes=_notes(a, b),
    )


def _sites(before: list[HeldBytes], after: list[HeldBytes]) -> list[SiteChange]:
    old, new = ({held.site: held for held in row} for row in (before, after))
    changes = [_site(name, old.get(name), new.get(name)) for name in old | new]
    kept = [
        change for change in changes if change.difference_bytes or change.before_count != change.after_count
    ]
    return sorted(kept, key=lambda change: (-abs(change.difference_bytes), change.site))


def _site(name: str, old: HeldBytes | None, new: HeldBytes | None) -> SiteChange:
    before, after = (held.bytes if held else 0 for held in (old, new))
    kind = _kind(old is None, new is None, after - before)
    known = new or old
    return SiteChange(
        site=name,
        change=kind,
        before_bytes=before,
        after_bytes=after,
        difference_bytes=after - before,
        before_count=old.count if old else 0,
        after_count=new.count if new else 0,
        category=known.category if known else None,
    )


def _kind(is_new: bool, is_gone: bool, difference: int) -> Literal["grew", "shrank", "new", "gone"]:
    if is_new:
        return "new"
    if is_gone:
        return "gone"
    return "grew" if difference >= 0 else "shrank"


def _categories(before: dict[str, int], after: dict[str, int]) -> list[CategoryChange]:
    return [
        CategoryChange(
            category=name,
            before_bytes=before.get(name, 0),
            after_bytes=after.get(name, 0),
            difference_bytes=after.get(name, 0) - before.get(name, 0),
        )
        for name in before | after
    ]


def _fragmentation(before: Fragmentation | None, after: Fragmentation | None) -> FragmentationChange:
    if before is None or after is None:
        return FragmentationChange(before=before, after=after)
    return FragmentationChange(
        before=before,
        after=after,
        inactive_split_difference_bytes=after.inactive_split_bytes - before.inactive_split_bytes,
        cached_whole_difference_bytes=after.cached_whole_bytes - before.cached_whole_bytes,
        unused_difference=after.unused - before.unused,
    )


def _notes(a: SnapshotReport, b: SnapshotReport) -> list[str]:
    notes = []
    with_history = [any(device.events for device in report.devices) for report in (a, b)]
    if with_history[0] != with_history[1]:
        notes.append("one of the two has no history: its peak is that of the end")
    if a.settings.text != b.settings.text:
        notes.append(
            f"the allocator's settings differ: {a.settings.text or 'default'}, {b.settings.text or 'default'}"
        )
    if len(a.devices) != len(b.devices):
        notes.append(f"the number of devices differs: {len(a.devices)}, {len(b.devices)}")
    return notes
