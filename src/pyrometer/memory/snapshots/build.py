"""From a snapshot to its report."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from pyrometer.memory.snapshots.allocator.device import RecordedDevice, simulate
from pyrometer.memory.snapshots.allocator.levers import advise
from pyrometer.memory.snapshots.allocator.settings import AllocatorSettings, recorded_settings
from pyrometer.memory.snapshots.categories import PHASES, Categories, categorise
from pyrometer.memory.snapshots.fragments import failed_request, fragmentation
from pyrometer.memory.snapshots.holding import Holders
from pyrometer.memory.snapshots.layout import Layout, layout_at_end, layouts_after, reserved_over_time
from pyrometer.memory.snapshots.lifetimes import BEFORE, Lifetimes, find_lifetimes
from pyrometer.memory.snapshots.pressure import Release, capacity_bytes, find_releases
from pyrometer.memory.snapshots.report import (
    CacheRelease,
    DeviceReport,
    FailedRequest,
    Fragmentation,
    PeakFragmentation,
    SettingsReport,
    SnapshotReport,
)
from pyrometer.memory.snapshots.sites import Site, sites
from pyrometer.memory.snapshots.snapshot import (
    NO_STACK,
    OOM,
    OTHER_ACTION,
    SEGMENT_MAP,
    DeviceSnapshot,
    Ints,
    Snapshot,
)
from pyrometer.memory.snapshots.timelines import build_timeline, seconds_at
from pyrometer.memory.timeline import Timeline
from pyrometer.quantity import counted, format_bytes

_MAX_OOMS = 50
_OOM_SITES = 20


def report_snapshot(snapshot: Snapshot, *, device_total_bytes: int | None = None) -> SnapshotReport:
    """Explain a snapshot: peak, who holds it, fragmentation, failed requests, and what to change.

    Args:
        snapshot: as `read_snapshot` gives it.
        device_total_bytes: memory of the device, which no file tells; with it, what other processes hold is found.
    """
    checked = recorded_settings(snapshot.settings)
    settings = _as_seen(snapshot, checked.settings)
    named = sites(snapshot)
    devices = [
        _Device(snapshot, device, settings, named, device_total_bytes).report() for device in snapshot.devices
    ]
    main = max(devices, key=lambda device: device.peak_bytes, default=None)
    shared = set(DeviceReport.__struct_fields__) & set(SnapshotReport.__struct_fields__) - {"notes"}
    top = {name: getattr(main, name) for name in shared} if main else {"peak_bytes": 0, "device": None}
    given = snapshot.settings.get("PYTORCH_CUDA_ALLOC_CONF", snapshot.settings.get("PYTORCH_ALLOC_CONF"))
    return SnapshotReport(
        path=snapshot.path,
        **top,
        settings=SettingsReport(
            text=given if isinstance(given, str) else None,
            values=snapshot.settings,
            problems=checked.problems,
        ),
        notes=[*_notes(snapshot), *(main.notes if main else ())],
        devices=devices,
    )


def _as_seen(snapshot: Snapshot, settings: AllocatorSettings) -> AllocatorSettings:
    """Files without settings still show whether segments grow."""
    grows = any(
        device.segments.expandable.any() or (device.events.action == SEGMENT_MAP).any()
        for device in snapshot.devices
    )
    return msgspec.structs.replace(settings, expandable_segments=True) if grows else settings


def _notes(snapshot: Snapshot) -> list[str]:
    """What the file as a whole does not tell."""
    notes = list(snapshot.notes)
    if not snapshot.devices:
        notes.append("the file is empty: was recording on, and anything allocated?")
    if not any(len(device.events) for device in snapshot.devices):
        notes.append(
            "no history: call torch.cuda.memory._record_memory_history() before, or use record_snapshot; the peak is that "
            "of the end"
        )
    if len(snapshot.stacks) <= 1 and snapshot.devices:
        notes.append("no call stacks: record with context='all' to learn who allocated")
    if not snapshot.settings and snapshot.devices:
        notes.append("the allocator's settings are not in the file; those by default are assumed")
    return notes


@dataclass
class _Instants:
    """Events that matter, and the layouts after them."""

    peak: int
    reserved_peak: int
    ooms: list[int]
    layouts: dict[int, Layout]


class _Device:
    """One device on its way to a report."""

    def __init__(
        self,
        snapshot: Snapshot,
        device: DeviceSnapshot,
        settings: AllocatorSettings,
        named: list[Site],
        device_total_bytes: int | None,
    ) -> None:
        self._snapshot, self._device, self._settings, self._sites = snapshot, device, settings, named
        self._total_bytes = device_total_bytes
        self._lifetimes: Lifetimes = find_lifetimes(device, settings)
        failures = np.flatnonzero(device.events.action == OOM)
        last_failure = int(failures[-1]) if len(failures) else BEFORE
        self._categories: Categories = categorise(
            snapshot, self._lifetimes, device.events.stack, last_failure
        )
        self._holders = Holders(self._lifetimes, self._categories, named)
        self._reserved: Ints = reserved_over_time(device)
        self._releases: list[Release] = find_releases(snapshot, device)
        self._instants = self._find_instants()

    def report(self) -> DeviceReport:
        """Everything about the device."""
        at, device = self._instants, self._device
        totals = self._lifetimes.sizes_over_time(self._lifetimes.size)
        count = len(device.events)
        bare = DeviceReport(
            device=device.index,
            events=count,
            peak_bytes=int(totals[at.peak + 1]),
            peak_event=at.peak,
            peak_time_s=seconds_at(device, at.peak),
            peak_phase=self._phase(at.peak),
            peak_reserved_bytes=int(self._reserved.max()),
            ledger_bytes=self._holders.ledger(at.peak),
            timeline=build_timeline(
                device, self._lifetimes, self._categories, [at.peak, at.reserved_peak, *at.ooms]
            )
            if count
            else Timeline(),
            at_peak=self._holders.after(at.peak),
            at_end=self._holders.after(count - 1),
            fragmentation=self._fragmentation(),
            oom=self._failed_requests(),
            releases=[self._release(release) for release in self._releases],
            retries=sum(release.reason == "retry" for release in self._releases),
            capacity_bytes=capacity_bytes(device, self._releases),
            notes=self._notes(),
        )
        return self._with_advice(bare) if count else bare

    def _find_instants(self) -> _Instants:
        totals = self._lifetimes.sizes_over_time(self._lifetimes.size)
        peak, reserved_peak = self._peak_at_work(totals), int(self._reserved.argmax()) - 1
        ooms = np.flatnonzero(self._device.events.action == OOM)[-_MAX_OOMS:].tolist()
        layouts = layouts_after(self._device, self._lifetimes, self._settings, [peak, reserved_peak, *ooms])
        return _Instants(peak, reserved_peak, ooms, layouts)

    def _peak_at_work(self, totals: Ints) -> int:
        """The event of the peak; where several are as high, the first in which the program was at work."""
        highest = np.flatnonzero(totals == totals.max()) - 1
        inside = highest[highest >= 0]
        working = inside[self._categories.phase[inside] > 0]
        return int(working[0] if len(working) else highest[0])

    def _fragmentation(self) -> PeakFragmentation:
        at, device = self._instants, self._device
        count = len(device.events)

        def after(event: int) -> Fragmentation:
            return fragmentation(at.layouts[event], event, seconds_at(device, event))

        at_end = fragmentation(layout_at_end(device), count - 1, seconds_at(device, count - 1))
        return PeakFragmentation(
            at_peak=after(at.peak) if count else None,
            at_reserved_peak=after(at.reserved_peak) if count else None,
            at_oom=[after(event) for event in at.ooms],
            at_end=at_end if len(device.segments) else None,
        )

    def _failed_requests(self) -> list[FailedRequest]:
        events = self._device.events
        return [
            failed_request(
                self._device,
                self._instants.layouts[event],
                event,
                time_s=seconds_at(self._device, event),
                site=self._sites[int(events.stack[event])].name,
                held=self._holders.after(event, _OOM_SITES),
            )
            for event in self._instants.ooms
        ]

    def _release(self, release: Release) -> CacheRelease:
        return CacheRelease(
            event=release.first,
            time_s=seconds_at(self._device, release.first),
            reason=release.reason,
            released_bytes=release.num_bytes,
            segments=release.num_segments,
        )

    def _phase(self, event: int) -> str | None:
        """What the stacks say, else which annotated stretch it was."""
        phase = self._categories.phase
        if 0 <= event < len(phase) and phase[event]:
            return PHASES[int(phase[event])]
        return self._annotated(event)

    def _annotated(self, event: int) -> str | None:
        times = self._device.events.time_us
        if not (0 <= event < len(times)) or times[event] < 0:
            return None
        open_names: list[str] = []
        for annotation in sorted(self._snapshot.annotations, key=lambda one: one.time_us):
            if annotation.device != self._device.index or annotation.time_us > int(times[event]):
                continue
            if annotation.begins:
                open_names.append(annotation.name)
            elif annotation.name in open_names:
                open_names.remove(annotation.name)
        return open_names[-1] if open_names else None

    def _notes(self) -> list[str]:
        """What this device's history does not tell."""
        device, lifetimes, notes = self._device, self._lifetimes, list(self._lifetimes.notes)
        before = lifetimes.made < 0
        if len(device.events) and before.any():
            total = format_bytes(int(lifetimes.size[before].sum()))
            notes.append(
                f"the history begins in the middle: {counted(int(before.sum()), 'allocation')} ({total}) were there before, "
                "because recording began late or its buffer (max_entries) was full and dropped the oldest events"
            )
        failed = int((device.events.action == OOM).sum())
        if failed > _MAX_OOMS:
            notes.append(f"of {counted(failed, 'failed request')} the last {_MAX_OOMS} are explained")
        others = int((device.events.action == OTHER_ACTION).sum())
        if others:
            notes.append(f"{counted(others, 'event')} of a kind that is not known were left out")
        outside = max((layout.outside_bytes for layout in self._instants.layouts.values()), default=0)
        if outside:
            notes.append(f"{format_bytes(outside)} were allocated in segments that the file does not know")
        if lifetimes.num_events and not (device.events.stack != NO_STACK).any():
            notes.append("the events have no call stacks")
        return notes

    def _with_advice(self, bare: DeviceReport) -> DeviceReport:
        focus = self._instants.ooms[-1] if self._instants.ooms else self._instants.reserved_peak
        played, base, simulation = simulate(
            self._device,
            self._lifetimes,
            settings=self._settings,
            releases=self._releases,
            reserved=self._reserved,
            focus=max(focus, 0),
            capacity_bytes=bare.capacity_bytes,
        )
        recorded = RecordedDevice(
            report=bare,
            settings=self._settings,
            device=self._device,
            lifetimes=self._lifetimes,
            releases=self._releases,
            reserved=self._reserved,
            sites=self._sites,
            script=played,
            base=base,
            simulation=simulation,
            device_total_bytes=self._total_bytes,
        )
        return msgspec.structs.replace(bare, simulation=simulation, advice=advise(recorded))
