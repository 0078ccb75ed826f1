"""What a page draws of: memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

from pyrometer.memory.category import CATEGORIES, MEANING
from pyrometer.memory.profile import MemoryProfile, PredictedMemory
from pyrometer.memory.snapshots.report import DeviceReport, Fragmentation, PeakFragmentation, SnapshotReport
from pyrometer.quantity import Bytes, counted, format_bytes, format_percent
from pyrometer.record import Record, doc
from pyrometer.report.attachments import Attachments
from pyrometer.report.chapters.memory import SLOTS
from pyrometer.report.documents import CheckDocument, Document, MemoryDocument, SnapshotDocument
from pyrometer.report.facts.layout import percent
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.report.payloads.memory_change import changes
from pyrometer.report.payloads.memory_course import Course, course, events_of
from pyrometer.report.payloads.memory_held import Holding, holding
from pyrometer.report.payloads.memory_leak import LeakSeries, leak_series

MOST_PLACES = 400
MOST_FAILURES = 10

NO_SERIES = "What was alive over time was not recorded; the figures are those of the peak."
NO_CLOCK = "There is no clock in the record: the axis counts allocations and frees, not time."
NO_ALLOCATOR = "No caching allocator was recorded, so there is no line of reserved bytes."
NO_PLACES = "Which places hold the peak was not recorded."
NO_LAYOUT = "Where each segment and block lies is in the snapshot file, not in this record; what is drawn are the sums."


class Category(Record, frozen=True, kw_only=True):
    """One category of the ledger."""

    name: str
    slot: Annotated[int, doc("colour in the palette")]
    meaning: str
    peak_bytes: Annotated[Bytes, doc("at the peak")]
    share: Annotated[float, doc("of the peak")]
    predicted_bytes: Annotated[Bytes | None, doc("at the predicted peak; null without a prediction")] = None


class Piece(Record, frozen=True, kw_only=True):
    """One part of a bar."""

    name: str
    slot: int
    bytes: Bytes


class Bar(Record, frozen=True, kw_only=True):
    """A whole and its parts."""

    label: str
    note: str = ""
    total_bytes: Bytes
    pieces: list[Piece]


class MemoryPart(Record, frozen=True, kw_only=True):
    """The memory of one program, or of one device."""

    label: str
    peak_bytes: Bytes
    peak_said: Annotated[str, doc("the peak and when it was, in words")]
    ledger: list[Category]
    course: Annotated[Course | None, doc("over time; null when it was not recorded")] = None
    holdings: Annotated[list[Holding], doc("who held it, at the peak first")] = []
    peaks: Annotated[list[Bar], doc("measured, predicted, and predicted under other settings")] = []
    fragments: Annotated[
        list[Bar], doc("what the allocator held at several instants, and how much was in use")
    ] = []
    leak: LeakSeries | None = None
    missing: Annotated[list[str], doc("what the record does not hold")] = []


class MemoryView(Record, frozen=True, kw_only=True):
    """What the page draws: one part, or one per device with the highest peak first."""

    parts: list[MemoryPart]


def blocks(document: Document, attachments: Attachments) -> Iterator[Block]:
    """Its data blocks."""
    del attachments
    if isinstance(document, MemoryDocument):
        yield block_of("memory/0", MemoryView(parts=[profile_part(document.profile, document.what_if)]))
    elif isinstance(document, CheckDocument) and document.evidence.memory is not None:
        yield block_of("memory/0", MemoryView(parts=[profile_part(document.evidence.memory)]))
    elif isinstance(document, SnapshotDocument) and document.report.device is not None:
        yield block_of("memory/0", MemoryView(parts=snapshot_parts(document.report)))
    if isinstance(document, (MemoryDocument, SnapshotDocument)) and document.diff is not None:
        yield block_of("grown/0", changes(document.diff))


def profile_part(profile: MemoryProfile, what_if: Sequence[PredictedMemory] = ()) -> MemoryPart:
    """What the page draws of a profile."""
    shown = course(profile.timeline)
    predicted = profile.predicted.ledger_bytes if profile.predicted is not None else None
    held = holding("at the peak", profile.peak_bytes, profile.ledger_bytes, profile.at_peak[:MOST_PLACES])
    return MemoryPart(
        label=profile.config,
        peak_bytes=profile.peak_bytes,
        peak_said=_said(profile.peak_bytes, profile.peak_phase),
        ledger=_ledger(profile.ledger_bytes, profile.peak_bytes, shown, predicted),
        course=shown,
        holdings=[held] if held is not None and profile.at_peak else [],
        peaks=_peaks(profile, what_if),
        leak=leak_series(profile.leak) if profile.leak is not None else None,
        missing=[*_missing(shown), *([] if profile.at_peak else [NO_PLACES]), *_beyond(profile, shown)],
    )


def snapshot_parts(report: SnapshotReport) -> list[MemoryPart]:
    """What the page draws of a snapshot: one part per device that held anything."""
    others = [device for device in report.devices if device.device != report.device and device.peak_bytes]
    main = next((device for device in report.devices if device.device == report.device), None)
    rest = sorted(others, key=lambda device_report: -device_report.peak_bytes)
    return [
        _device_part(report, main),
        *(_device_part(device_report, device_report) for device_report in rest),
    ]


def _device_part(report: SnapshotReport | DeviceReport, device: DeviceReport | None) -> MemoryPart:
    shown = course(report.timeline, events_of(report, device))
    held = [
        holding("at the peak", report.peak_bytes, report.ledger_bytes, report.at_peak[:MOST_PLACES]),
        *(
            holding(
                f"when {format_bytes(request.request_bytes)} were refused",
                request.allocated_bytes,
                {},
                request.held,
            )
            for request in report.oom[:MOST_FAILURES]
            if request.held
        ),
        holding("at the end", 0, {}, report.at_end[:MOST_PLACES]),
    ]
    bars = _fragments(report.fragmentation)
    return MemoryPart(
        label=f"device {report.device}",
        peak_bytes=report.peak_bytes,
        peak_said=_said(report.peak_bytes, device.peak_phase if device is not None else None),
        ledger=_ledger(report.ledger_bytes, report.peak_bytes, shown),
        course=shown,
        holdings=[one for one in held if one is not None and one.places.site],
        fragments=bars,
        missing=[*_missing(shown), *([] if report.at_peak else [NO_PLACES]), *([NO_LAYOUT] if bars else [])],
    )


def _said(peak: Bytes, phase: str | None) -> str:
    return f"{format_bytes(peak)} in {phase}" if phase else format_bytes(peak)


def _ledger(
    held: Mapping[str, Bytes],
    whole: Bytes,
    shown: Course | None,
    predicted: Mapping[str, Bytes] | None = None,
) -> list[Category]:
    """The categories at the peak, and those that only exist before or after it."""
    drawn = {layer.name for layer in shown.layers} if shown is not None else set()
    return [
        Category(
            name=name,
            slot=SLOTS[name],
            meaning=MEANING[name],
            peak_bytes=held.get(name, 0),
            share=held.get(name, 0) / max(whole, 1),
            predicted_bytes=predicted.get(name, 0) if predicted is not None else None,
        )
        for name in CATEGORIES
        if held.get(name) or (predicted or {}).get(name) or name in drawn
    ]


def _peaks(profile: MemoryProfile, what_if: Iterable[PredictedMemory]) -> list[Bar]:
    if profile.predicted is None and not what_if:
        return []
    bars = [_peak("measured", "", profile.peak_bytes, profile.ledger_bytes)]
    if profile.predicted is not None:
        memory = profile.predicted
        off = (
            ""
            if memory.error is None
            else f"off by {format_percent(memory.error, 2)}"
            if memory.error
            else "to the byte"
        )
        bars.append(_peak("predicted", off, memory.peak_bytes, memory.ledger_bytes))
    for predicted_memory in what_if:
        label = (
            ", ".join(f"{name} {value}" for name, value in predicted_memory.settings.items()) or "as written"
        )
        times = f"{predicted_memory.peak_bytes / max(profile.peak_bytes, 1):.2f}× of now, predicted"
        bars.append(_peak(label, times, predicted_memory.peak_bytes, predicted_memory.ledger_bytes))
    return bars


def _peak(label: str, note: str, total: Bytes, ledger: Mapping[str, Bytes]) -> Bar:
    pieces = [
        Piece(name=name, slot=SLOTS[name], bytes=ledger[name]) for name in CATEGORIES if ledger.get(name)
    ]
    return Bar(label=label, note=note, total_bytes=total, pieces=pieces)


def _fragments(fragmentation: PeakFragmentation) -> list[Bar]:
    instants = [
        ("at the peak", fragmentation.at_peak),
        ("when most was reserved", fragmentation.at_reserved_peak),
    ]
    instants += [("at a failed request", one) for one in fragmentation.at_oom[:MOST_FAILURES]]
    instants.append(("at the end", fragmentation.at_end))
    return [_fragment(label, one) for label, one in instants if one is not None]


def _fragment(label: str, fragmentation: Fragmentation) -> Bar:
    pieces = [
        Piece(name="in use", slot=2, bytes=fragmentation.allocated_bytes),
        Piece(name="waiting for a stream", slot=0, bytes=fragmentation.pending_free_bytes),
        Piece(name="split off", slot=6, bytes=fragmentation.inactive_split_bytes),
        Piece(name="whole segments", slot=5, bytes=fragmentation.cached_whole_bytes),
    ]
    stretches = f"{counted(fragmentation.free_blocks, 'free stretch')}, the largest {format_bytes(fragmentation.largest_free_bytes)}"
    note = f"{percent(fragmentation.unused)} unused" + (f"; {stretches}" if fragmentation.free_bytes else "")
    return Bar(
        label=label,
        note=note,
        total_bytes=fragmentation.reserved_bytes,
        pieces=[piece for piece in pieces if piece.bytes],
    )


def _missing(shown: Course | None) -> list[str]:
    if shown is None:
        return [NO_SERIES]
    return [
        *([] if shown.time_us_steps else [NO_CLOCK]),
        *([] if shown.reserved_steps else [NO_ALLOCATOR]),
    ]


def _beyond(profile: MemoryProfile, shown: Course | None) -> list[str]:
    """What the peak has and the series does not: scratch memory inside of operators, and the allocator's cache."""
    more = profile.peak_bytes - shown.peak_bytes if shown is not None else 0
    text = f"The peak has {format_bytes(more)} that no tensor shows, such as scratch memory inside of operators; the drawing over time is of tensors."
    return [text] if more > 0 else []
