"""Read a memory snapshot of torch's caching allocator, of any age and size, without running anything that it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pyrometer.errors import InputError
from pyrometer.memory.snapshots.reading.columns import (
    Collector,
    EventCollector,
    Interned,
    ItemCollector,
    StackTable,
    clean_text,
)
from pyrometer.memory.snapshots.reading.scan import Kind, scan
from pyrometer.memory.snapshots.reading.segments import SegmentTable
from pyrometer.memory.snapshots.reading.source import open_source
from pyrometer.memory.snapshots.reading.unpickle import Loaded, load
from pyrometer.memory.snapshots.snapshot import DEFAULT_POOL, Annotation, DeviceSnapshot, Events, Snapshot
from pyrometer.quantity import counted

_BATCH = 1000
_WORD = 1 << 63
_WRONG = (TypeError, KeyError, ValueError, AttributeError, OverflowError)


def read_snapshot(path: str | Path) -> Snapshot:
    """Read what `torch.cuda.memory._dump_snapshot` wrote, or the same packed by gzip.

    All generations of the format are read, from bare lists of segments on. The pickle is looked through first and may
    consist of plain data only; nothing that it names is imported or called. A file that was cut off is used as far as it
    goes. torch is not needed.

    Args:
        path: the file.

    Raises:
        InputError: there is no such file, or it is no memory snapshot.
    """
    source = open_source(Path(path))
    found = scan(source)
    tables = _Tables()
    loaded = load(source, found, tables.collector)
    try:
        snapshot = tables.snapshot(str(path), loaded)
    except _WRONG as error:
        raise InputError(f"{path}: not a memory snapshot: {type(error).__name__}: {error}") from error
    if not found.complete:
        snapshot.notes.append(
            f"the file is cut off: what comes after byte {found.end} is missing, settings and annotations perhaps too"
        )
    return snapshot


class _Tables:
    """What the items of a file are sorted into."""

    def __init__(self) -> None:
        self._stacks = StackTable()
        self._pools = Interned()
        self._pools.number(DEFAULT_POOL)
        self._labels = Interned()

    def collector(self, kind: Kind) -> Collector:
        """What takes the items of a list."""
        return ItemCollector() if kind == "segments" else self._events()

    def _events(self) -> EventCollector:
        return EventCollector(self._stacks, self._pools, self._labels)

    def snapshot(self, path: str, loaded: Loaded) -> Snapshot:
        """Put together what was read."""
        segments, traces, rest = self._parts(loaded)
        table = SegmentTable(self._stacks, self._pools)
        for segment in segments:
            table.add(segment)
        indices = sorted({*range(len(traces)), *table.devices()})
        histories = [traces[i].finished() if i < len(traces) else _no_events() for i in indices]
        devices = [
            DeviceSnapshot(index, events, *table.finished(index))
            for index, events in zip(indices, histories, strict=True)
        ]
        annotations, left_out = _annotations(rest)
        return Snapshot(
            path=path,
            devices=[device for device in devices if len(device.events) or len(device.segments)],
            stacks=self._stacks.stacks,
            frames=self._stacks.frames,
            pools=self._pools.values,
            labels=self._labels.values,
            settings=_settings(rest),
            annotations=annotations,
            has_history="device_traces" in rest or bool(traces),
            notes=[*_left_out(traces, left_out), *table.notes],
        )

    def _parts(self, loaded: Loaded) -> tuple[list[Any], list[EventCollector], dict[str, Any]]:
        """Segments, events per device, and everything beside them."""
        root = loaded.root
        if not loaded.complete:  # only what was collected
            items = [
                collector.items for _, collector in loaded.collected if isinstance(collector, ItemCollector)
            ]
            traces = [collector for _, collector in loaded.collected if isinstance(collector, EventCollector)]
            return [segment for part in items for segment in part], traces, {}
        if not isinstance(root, dict):
            return _items(root), [], {}
        if "segments" not in root and "device_traces" not in root:
            raise InputError("no segments and no device_traces in it: a pickle, but not a memory snapshot")
        raw = _items(root.get("device_traces", []))
        if len({id(one) for one in raw}) < len(raw):
            raise ValueError("the events of one device are there again by reference")
        traces = [self._trace(one) for one in raw]
        return _items(root.get("segments", [])), traces, root

    def _trace(self, raw: Any) -> EventCollector:
        """One device's events, collected while loading or not."""
        if isinstance(raw, EventCollector):
            return raw
        made, events = self._events(), _items(raw)
        for first in range(0, len(events), _BATCH):
            made.extend(events[first : first + _BATCH])
        return made


def _items(raw: Any) -> list[Any]:
    if isinstance(raw, ItemCollector):
        return raw.items
    if isinstance(raw, list):
        return raw
    raise TypeError(f"{type(raw).__name__} where a list belongs")


def _no_events() -> Events:
    ints, numbers = np.zeros(0, np.int64), np.zeros(0, np.int32)
    return Events(np.zeros(0, np.uint8), ints, ints, ints, ints, numbers, numbers, numbers)


def _settings(rest: dict[str, Any]) -> dict[str, Any]:
    found = rest.get("allocator_settings")
    return {clean_text(key): _value(value) for key, value in found.items()} if isinstance(found, dict) else {}


def _value(raw: Any) -> Any:
    """A setting: a number, text, or numbers by text."""
    if isinstance(raw, dict):
        return {
            clean_text(key): value
            for key, value in raw.items()
            if isinstance(value, int) and abs(value) < _WORD
        }
    if isinstance(raw, str):
        return clean_text(raw)
    return (
        raw if raw is None or isinstance(raw, float) or (isinstance(raw, int) and abs(raw) < _WORD) else "?"
    )


def _annotations(rest: dict[str, Any]) -> tuple[list[Annotation], int]:
    """Those that can be understood, each once, and how many cannot."""
    raw = rest.get("external_annotations") or []
    entries = raw if isinstance(raw, list) else [raw]
    made = [_annotation(one) for one in {id(entry): entry for entry in entries}.values()]
    understood = [annotation for annotation in made if annotation is not None]
    return understood, len(entries) - len(understood)


def _annotation(raw: Any) -> Annotation | None:
    if not isinstance(raw, dict):
        return None
    device, time_us = raw.get("device", 0), raw.get("time_us", 0)
    if not (isinstance(device, int) and isinstance(time_us, int) and abs(time_us) < _WORD):
        return None
    return Annotation(clean_text(raw.get("name")), raw.get("stage") == "START", device, time_us)


def _left_out(traces: list[EventCollector], annotations: int) -> list[str]:
    found = ((sum(trace.skipped for trace in traces), "event"), (annotations, "annotation"))
    return [
        f"{counted(count, noun)} left out: repeated, or not to be understood"
        for count, noun in found
        if count
    ]
