"""When the allocator gave memory back: because the program asked, or because the device had no more to give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pyrometer.memory.snapshots.layout import reserved_over_time
from pyrometer.memory.snapshots.snapshot import (
    FREE_COMPLETED,
    OOM,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    DeviceSnapshot,
    Ints,
    Snapshot,
)

_ASKED = ("empty_cache", "emptyCache")


@dataclass(frozen=True)
class Release:
    """A run of segments given back."""

    first: int
    """Number of its first event."""
    last: int
    num_bytes: int
    num_segments: int
    reason: Literal["empty_cache", "retry"]
    """`retry`: asked the device for more in vain, gave back what was cached, asked again."""
    wanted_bytes: int
    """What was asked of the device then; 0 after `empty_cache`."""


def find_releases(snapshot: Snapshot, device: DeviceSnapshot) -> list[Release]:
    """Every run of segments given back, and why.

    A stack with `empty_cache` tells. Else it was a retry when a new segment, or an OOM, comes next, unless less was held
    before than at another time, when the device could not have refused.
    """
    events = device.events
    given = np.flatnonzero((events.action == SEGMENT_FREE) | (events.action == SEGMENT_UNMAP)).tolist()
    reserved = reserved_over_time(device)
    top = int(reserved.max()) if len(reserved) else 0
    asked = _stacks_asking(snapshot)
    runs: list[list[int]] = []
    for event in given:
        if runs and (events.action[runs[-1][-1] + 1 : event] == FREE_COMPLETED).all():
            runs[-1].append(event)
        else:
            runs.append([event])
    return [_release(device, run, reserved, top, asked) for run in runs]


def _stacks_asking(snapshot: Snapshot) -> set[int]:
    """Numbers of the stacks in which the program asked."""
    frames = {i for i, frame in enumerate(snapshot.frames) if any(name in frame.name for name in _ASKED)}
    return {i for i, stack in enumerate(snapshot.stacks) if frames.intersection(stack)}


def _release(device: DeviceSnapshot, run: list[int], reserved: Ints, top: int, asked: set[int]) -> Release:
    events, last = device.events, run[-1]
    after = last + 1
    while after < len(events) and events.action[after] == FREE_COMPLETED:
        after += 1
    new = after < len(events) and int(events.action[after]) in (SEGMENT_ALLOC, SEGMENT_MAP, OOM)
    wanted = int(events.size[after]) if new else 0
    by_program = bool(asked.intersection(events.stack[run].tolist()))
    retry = new and not by_program and int(reserved[run[0]]) + wanted > top
    return Release(
        first=run[0],
        last=last,
        num_bytes=int(events.size[run].sum()),
        num_segments=len(run),
        reason="retry" if retry else "empty_cache",
        wanted_bytes=wanted if retry else 0,
    )


def capacity_bytes(device: DeviceSnapshot, releases: list[Release]) -> int | None:
    """How much the device could give to this process, as far as events tell; `None` when it never refused.

    At an OOM: what was held and what the device had left, unless that was enough, when a limit for the process must have
    been in the way. At a retry: less than was held with what was asked for.
    """
    events = device.events
    reserved = reserved_over_time(device)
    ooms = np.flatnonzero(events.action == OOM)
    top = int(reserved.max()) if len(reserved) else 0
    if len(ooms):
        left = np.where(events.address[ooms] < events.size[ooms], events.address[ooms], 0)
        known = reserved[ooms + 1] + left
        return max(int(known.min()), top)
    refused = [
        int(reserved[release.first]) + release.wanted_bytes - 1
        for release in releases
        if release.reason == "retry"
    ]
    return max(min(refused), top) if refused else None
