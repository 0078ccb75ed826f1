"""Play the allocations of a snapshot again, in an allocator with other settings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyrometer.memory.snapshots.allocator.blocks import Block
from pyrometer.memory.snapshots.allocator.settings import AllocatorSettings
from pyrometer.memory.snapshots.allocator.simulator import CachingAllocator
from pyrometer.memory.snapshots.lifetimes import Lifetimes
from pyrometer.memory.snapshots.pressure import Release
from pyrometer.memory.snapshots.snapshot import OOM, DeviceSnapshot

MAX_EVENTS = 150_000
"""More would take too long for a program to wait; the stretch up to the instant that matters is taken."""
_MALLOC, _REQUEST_FREE, _COMPLETE_FREE, _TRY, _EMPTY = range(5)

Step = tuple[int, int, int, int, int, int]
"""Event, what, allocation, bytes, stream, pool."""


@dataclass(frozen=True)
class Script:
    """What the program asked of the allocator, in order."""

    steps: list[Step]
    first: int
    last: int
    """Events that it covers."""
    whole: bool

    @property
    def num_events(self) -> int:
        """How many allocations and frees."""
        return len(self.steps)

    def without_empty_cache(self) -> Script:
        """As if the program had never emptied the cache."""
        steps = [step for step in self.steps if step[1] != _EMPTY]
        return Script(steps, self.first, self.last, self.whole)

    def with_empty_cache(self, event: int) -> Script:
        """As if the program had emptied the cache once more, after an event."""
        at = next((i for i, step in enumerate(self.steps) if step[0] > event), len(self.steps))
        steps = [*self.steps[:at], (event, _EMPTY, -1, 0, 0, 0), *self.steps[at:]]
        return Script(steps, self.first, self.last, self.whole)


@dataclass(frozen=True)
class Outcome:
    """What the allocator did."""

    peak_reserved_bytes: int
    end_reserved_bytes: int
    failed: int
    """Requests that could not be served though they were when recorded."""
    fits: list[bool]
    """Of the requests that failed when recorded, in order."""
    device_allocs: int
    retries: int


def script(device: DeviceSnapshot, lifetimes: Lifetimes, releases: list[Release], focus: int) -> Script:
    """Collect what was asked, around the instant that matters.

    What was there before the first event is asked for first, in the order of its addresses.

    Args:
        device: for its failed requests.
        lifetimes: of its allocations.
        releases: of which those that the program asked for are played too.
        focus: an event that must be covered.
    """
    first, last = _window(lifetimes, focus)
    mine = np.flatnonzero((lifetimes.reusable >= first) & (lifetimes.made < last))
    order = mine[np.argsort(lifetimes.address[mine], kind="stable")]
    steps: list[Step] = []
    columns = (lifetimes.requested, lifetimes.stream, lifetimes.pool)
    for i in order.tolist():
        size, stream, pool = (int(column[i]) for column in columns)
        made, freed, reusable = (
            int(column[i]) for column in (lifetimes.made, lifetimes.freed, lifetimes.reusable)
        )
        steps.append((max(made, first - 1), _MALLOC, i, size, stream, pool))
        if freed < last:
            steps.append((max(freed, first - 1), _REQUEST_FREE, i, 0, 0, 0))
        if reusable < last:
            steps.append((reusable, _COMPLETE_FREE, i, 0, 0, 0))
    steps += _failed(device, first, last)
    steps += [(release.last, _EMPTY, -1, 0, 0, 0) for release in releases if _asked(release, first, last)]
    steps.sort(key=lambda step: step[0])  # stable: what was there before stays in order of address
    return Script(steps, first, last, whole=first <= 0 and last >= lifetimes.num_events)


def _window(lifetimes: Lifetimes, focus: int) -> tuple[int, int]:
    """First event, and the one after the last."""
    count = lifetimes.num_events
    if count <= MAX_EVENTS:
        return 0, count
    last = min(count, focus + MAX_EVENTS // 10)
    return max(0, last - MAX_EVENTS), last


def _failed(device: DeviceSnapshot, first: int, last: int) -> list[Step]:
    events = device.events
    return [
        (i, _TRY, -1, int(events.size[i]), int(events.stream[i]), int(events.pool[i]))
        for i in np.flatnonzero(events.action == OOM).tolist()
        if first <= i < last
    ]


def _asked(release: Release, first: int, last: int) -> bool:
    return release.reason == "empty_cache" and first <= release.first < last


def play(script: Script, settings: AllocatorSettings, capacity_bytes: int | None) -> Outcome:
    """Let an allocator serve a script.

    Args:
        script: what is asked.
        settings: of the allocator.
        capacity_bytes: what the device can give; `None` for any amount.
    """
    allocator = CachingAllocator(settings, capacity_bytes)
    blocks: dict[int, Block] = {}
    failed, fits = 0, []
    for _, what, number, size, stream, pool in script.steps:
        if what == _MALLOC:
            block = allocator.malloc(size, stream, pool)
            if block is None:
                failed += 1
            else:
                blocks[number] = block
        elif what == _REQUEST_FREE:
            if number in blocks:
                allocator.request_free(blocks[number])
        elif what == _COMPLETE_FREE:
            block = blocks.pop(number, None)
            if block is not None:
                allocator.complete_free(block)
        elif what == _TRY:
            block = allocator.malloc(size, stream, pool)
            fits.append(block is not None)
            if block is not None:
                allocator.free(block)
        else:
            allocator.empty_cache()
    return Outcome(
        peak_reserved_bytes=allocator.peak_reserved_bytes,
        end_reserved_bytes=allocator.reserved_bytes,
        failed=failed,
        fits=fits,
        device_allocs=allocator.num_device_allocs,
        retries=allocator.num_retries,
    )
