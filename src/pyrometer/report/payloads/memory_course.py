"""Live bytes over the events of a recording, as columns of running differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.snapshots.report import DeviceReport, SnapshotReport
from pyrometer.memory.timeline import PhaseSpan, Timeline
from pyrometer.quantity import Bytes, format_bytes
from pyrometer.record import Record, doc

UNTOLD = "of no category"


class Layer(Record, frozen=True, kw_only=True):
    """Bytes of one category over time."""

    name: str
    steps: Annotated[list[Bytes], doc("differences from point to point; the first is the first value")]


class Mark(Record, frozen=True, kw_only=True):
    """Something that happened at one point."""

    point: Annotated[int, doc("index of the point")]
    kind: Literal["failed", "emptied", "refused"]
    text: str


class Course(Record, frozen=True, kw_only=True):
    """Live bytes over events; all columns are equally long, and hold differences from point to point."""

    event_steps: Annotated[list[int], doc("numbers of the allocations and frees")]
    time_us_steps: Annotated[list[int], doc("microseconds since the first point; empty without a clock")] = []
    layers: Annotated[list[Layer], doc("they add up to all live bytes; the lowest first")]
    reserved_steps: Annotated[list[Bytes], doc("what the allocator holds; empty without one")] = []
    phases: list[PhaseSpan] = []
    peak: Annotated[int, doc("index of the highest point")]
    peak_bytes: Annotated[Bytes, doc("live bytes there")]
    marks: list[Mark] = []


class Event(NamedTuple):
    """Something that happened, by the number of its event."""

    event: int
    kind: Literal["failed", "emptied", "refused"]
    text: str


def course(timeline: Timeline, events: Iterable[Event] = ()) -> Course | None:
    """The columns of a timeline; `None` where fewer than two points were recorded, or nothing was ever alive.

    >>> found = course(Timeline(event=[0, 4], total_bytes=[8, 6], category_bytes={"inputs": [8, 5]}))
    >>> [(layer.name, layer.steps) for layer in found.layers], found.event_steps, found.peak
    ([('inputs', [8, -3]), ('of no category', [0, 1])], [0, 4], 0)
    """
    total = timeline.total_bytes
    if len(timeline.event) < 2 or not any(total):
        return None
    times = [round(time_s * 1e6) for time_s in timeline.time_s]
    return Course(
        event_steps=_steps(timeline.event),
        time_us_steps=_steps(times) if len(set(times)) > 1 else [],
        layers=_layers(timeline),
        reserved_steps=_steps(timeline.reserved_bytes) if any(timeline.reserved_bytes) else [],
        phases=timeline.phases,
        peak=total.index(max(total)),
        peak_bytes=max(total),
        marks=_marks(timeline.event, events),
    )


def events_of(report: SnapshotReport | DeviceReport, device: DeviceReport | None) -> list[Event]:
    """What a snapshot says happened: requests that failed, and segments that were given back."""
    events = [Event(request.event, "failed", request.sentence) for request in report.oom]
    for release in device.releases if device is not None else []:
        released = format_bytes(release.released_bytes)
        if release.reason == "empty_cache":
            events.append(Event(release.event, "emptied", f"empty_cache gave {released} back"))
        else:
            events.append(
                Event(
                    release.event, "refused", f"the device refused; {released} of the cache were given back"
                )
            )
    return events


def _layers(timeline: Timeline) -> list[Layer]:
    known = {name: timeline.category_bytes[name] for name in CATEGORIES if name in timeline.category_bytes}
    rest = [
        max(0, total - sum(column[point] for column in known.values()))
        for point, total in enumerate(timeline.total_bytes)
    ]
    layers = [Layer(name=name, steps=_steps(column)) for name, column in known.items() if any(column)]
    return [*layers, Layer(name=UNTOLD, steps=_steps(rest))] if any(rest) else layers


def _marks(numbers: Sequence[int], events: Iterable[Event]) -> list[Mark]:
    """Events at the last point that is not after them."""
    marks = []
    for event in events:
        point = max((i for i, number in enumerate(numbers) if number <= event.event), default=0)
        marks.append(Mark(point=point, kind=event.kind, text=event.text))
    return marks


def _steps(values: Sequence[int]) -> list[int]:
    return [values[0], *(after - before for before, after in pairwise(values))] if values else []
