"""A snapshot of CUDA's caching allocator in words: the answer first, then chapter after chapter."""

from __future__ import annotations

from collections.abc import Callable

from pyrometer.memory.place import HeldBytes
from pyrometer.memory.snapshots.difference import SiteChange, SnapshotDiff
from pyrometer.memory.snapshots.report import Fragmentation, SnapshotReport
from pyrometer.quantity import counted, format_bytes, format_percent
from pyrometer.report.documents import SnapshotDocument
from pyrometer.report.facts.layout import Fact, Section, Table, percent, told
from pyrometer.report.facts.memory import alike
from pyrometer.report.facts.trace_words import short, short_path

Chapter = Callable[[SnapshotReport], "Section | None"]


def headline(report: SnapshotReport) -> str:
    """The answer: a failed request, or how well the memory was used at the peak."""
    if report.device is None:
        return "the snapshot holds no memory"
    parts = [report.oom[0].sentence] if report.oom else []
    parts.append(
        f"peak {format_bytes(report.peak_bytes)} of {format_bytes(report.peak_reserved_bytes)} reserved"
    )
    peak = report.fragmentation.at_peak
    if peak is not None and peak.reserved_bytes:
        parts.append(f"{percent(peak.unused)} of it unused at the peak")
    return " · ".join(parts)


def subtitle(report: SnapshotReport) -> str:
    """What was read."""
    devices = [device for device in report.devices if device.events or device.peak_bytes]
    parts = [short_path(report.path), counted(len(devices), "device")]
    parts.append(f"{counted(sum(device.events for device in devices), 'event')}")
    if report.settings.text:
        parts.append(f"settings {report.settings.text}")
    return " · ".join(parts)


def document_sections(document: SnapshotDocument) -> list[Section]:
    """All chapters, behind what was asked for besides; empty ones are left out."""
    asked = _difference(document.diff) if document.diff is not None else []
    return told([*asked, *(chapter(document.report) for chapter in CHAPTERS)])


def _failed(report: SnapshotReport) -> Section | None:
    rows = [
        (
            short_path(request.site),
            format_bytes(request.request_bytes),
            format_bytes(request.device_free_bytes),
            format_bytes(request.usable_free_bytes),
            format_bytes(request.largest_free_bytes),
            f"{request.free_blocks:,}",
        )
        for request in report.oom
    ]
    columns = (
        "asked for at",
        "request",
        "free on the device",
        "free in the cache",
        "largest block",
        "blocks",
    )
    facts = [Fact("failed", request.sentence) for request in report.oom]
    return Section("oom", "Out of memory", facts, Table(columns, rows)) if rows else None


def _fragmentation(report: SnapshotReport) -> Section:
    fragmentation = report.fragmentation
    instants = [
        ("at the peak", fragmentation.at_peak),
        ("when most was reserved", fragmentation.at_reserved_peak),
    ]
    instants += [("at a failed request", one) for one in fragmentation.at_oom]
    instants.append(("at the end", fragmentation.at_end))
    rows = [(name, *_fragments(one)) for name, one in instants if one is not None]
    columns = (
        "when",
        "reserved",
        "in use",
        "waiting for a stream",
        "split off",
        "whole segments",
        "largest free",
        "unused",
    )
    how = "Reserved is what the allocator took from the device: in use, freed but waiting for a stream, free beside something in use, or free as a whole segment. What counts is the peak: at the end much is free because the work is done."
    return Section("fragmentation", "Fragmentation", [], Table(columns, rows), how)


def _fragments(fragmentation: Fragmentation) -> tuple[str, ...]:
    sizes = (
        fragmentation.reserved_bytes,
        fragmentation.allocated_bytes,
        fragmentation.pending_free_bytes,
        fragmentation.inactive_split_bytes,
        fragmentation.cached_whole_bytes,
        fragmentation.largest_free_bytes,
    )
    return (*(format_bytes(size) for size in sizes), percent(fragmentation.unused))


def _held_at_peak(report: SnapshotReport) -> Section | None:
    return _held("held", "What holds the peak", report.at_peak, report.peak_bytes)


def _held_at_end(report: SnapshotReport) -> Section | None:
    return _held("end", "What is held at the end", report.at_end, sum(held.bytes for held in report.at_end))


def _held(slug: str, title: str, places: list[HeldBytes], whole: int) -> Section:
    rows = [
        (
            short_path(held.site),
            format_bytes(held.bytes),
            percent(held.bytes / max(whole, 1)),
            str(held.count),
            held.category or "",
            short(held.function or "", 40),
        )
        for held in alike(places)
    ]
    columns = ("allocated at", "bytes", "share", "blocks", "category", "function")
    return Section(slug, title, [], Table(columns, rows, frozenset({4, 5})))


def _cache(report: SnapshotReport) -> Section | None:
    device = next(
        (device_report for device_report in report.devices if device_report.device == report.device), None
    )
    if device is None:
        return None
    facts = []
    if device.retries:
        facts.append(
            Fact(
                "refused and tried again", counted(device.retries, "time"), "each time the cache was emptied"
            )
        )
    emptied = [release for release in device.releases if release.reason == "empty_cache"]
    if emptied:
        released = sum(release.released_bytes for release in emptied)
        facts.append(
            Fact("empty_cache", counted(len(emptied), "time"), f"{format_bytes(released)} given back")
        )
    if device.simulation is not None:
        off = format_percent(abs(device.simulation.error), 2)
        trusted = (
            "figures of the advice rest on it"
            if device.simulation.trusted
            else "too far off to rest figures on"
        )
        facts.append(Fact("simulated allocator", f"off by {off} from what was recorded", trusted))
    facts += [Fact("setting", problem) for problem in report.settings.problems]
    return Section("cache", "The caching allocator", facts)


def _notes(report: SnapshotReport) -> Section:
    notes = [Fact("note", note) for note in report.notes]
    return Section("unknown", "What the file does not tell", notes)


def _difference(diff: SnapshotDiff) -> list[Section]:
    facts = [
        Fact("peak", f"{format_bytes(diff.peak_before_bytes)} → {format_bytes(diff.peak_after_bytes)}"),
        Fact("peak reserved", _signed(diff.reserved_difference_bytes)),
        *(
            Fact(category.category, _signed(category.difference_bytes))
            for category in diff.categories
            if category.difference_bytes
        ),
        *(Fact("note", note) for note in diff.notes),
    ]
    return [
        Section("difference", "Against the other snapshot, at the peak", facts, _changes(diff.at_peak)),
        Section("grown", "Against the other snapshot, at the end", [], _changes(diff.at_end)),
    ]


def _changes(changes: list[SiteChange]) -> Table | None:
    if not changes:
        return None
    rows = [
        (
            short_path(change.site),
            change.change,
            _signed(change.difference_bytes),
            f"{format_bytes(change.before_bytes)} → {format_bytes(change.after_bytes)}",
        )
        for change in changes
    ]
    return Table(("allocated at", "", "change", "from → to"), rows, frozenset({1}))


def _signed(change: int) -> str:
    return f"{'+' if change > 0 else ''}{format_bytes(change)}"


CHAPTERS: tuple[Chapter, ...] = (_failed, _fragmentation, _held_at_peak, _held_at_end, _cache, _notes)
