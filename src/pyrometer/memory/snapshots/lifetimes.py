"""From events to allocations: when each was made, asked to be freed, and free again.

Addresses are used over and over, so an allocation is an address and its generation. What was freed without having been
made, and what is in use at the end without having been made, was there before the recording.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyrometer.memory.snapshots.allocator.settings import AllocatorSettings
from pyrometer.memory.snapshots.allocator.sizes import round_sizes
from pyrometer.memory.snapshots.snapshot import (
    ALLOC,
    FREE,
    FREE_COMPLETED,
    FREE_REQUESTED,
    NO_STACK,
    PENDING,
    DeviceSnapshot,
    Ints,
)
from pyrometer.quantity import counted

BEFORE = -1
"""Made before the first event."""


@dataclass(frozen=True)
class Lifetimes:
    """All allocations that events or blocks know of; an allocation is in use after event i if made <= i < freed."""

    address: Ints
    requested: Ints
    size: Ints
    """As rounded by the allocator; of those still there at the end, what the file says."""
    made: Ints
    """Number of the event, or `BEFORE`."""
    freed: Ints
    """Event that asked for it to be freed; the number of events where it never was."""
    reusable: Ints
    """Event after which its bytes could be used again; later than `freed` when another stream still used it."""
    stack: npt.NDArray[np.int32]
    stream: Ints
    pool: npt.NDArray[np.int32]
    category: npt.NDArray[np.int32]
    num_events: int
    notes: list[str]

    def __len__(self) -> int:
        return len(self.address)

    def in_use_after(self, event: int) -> npt.NDArray[np.bool_]:
        """Which are in use after an event."""
        return (self.made <= event) & (self.freed > event)

    def held_after(self, event: int) -> npt.NDArray[np.bool_]:
        """Which are in use, or freed but not reusable yet."""
        return (self.made <= event) & (self.reusable > event)

    def sizes_over_time(self, amount: Ints) -> Ints:
        """Sum of an amount over what is in use, before the first event and after each; one longer than the events."""
        change = np.zeros(self.num_events + 2, np.int64)
        np.add.at(change, self.made + 1, amount)
        np.subtract.at(change, self.freed + 1, amount)
        return np.cumsum(change)[:-1]


def find_lifetimes(device: DeviceSnapshot, settings: AllocatorSettings) -> Lifetimes:
    """Match frees with allocations, and blocks at the end with both."""
    lifetimes = _from_events(device, settings)
    return _with_blocks(lifetimes, device)


def _from_events(device: DeviceSnapshot, settings: AllocatorSettings) -> Lifetimes:
    events = device.events
    picked = np.flatnonzero(events.action <= FREE_COMPLETED)
    by_address = picked[np.argsort(events.address[picked], kind="stable")]
    address, action = events.address[by_address], events.action[by_address]
    other = np.ones(len(address), np.bool_)
    other[1:] = address[1:] != address[:-1]
    begins = other | (action == ALLOC)
    begins[1:] |= action[:-1] == FREE_COMPLETED
    first = np.flatnonzero(begins)
    unit = np.cumsum(begins) - 1
    count, last = len(first), len(events)
    freed = _first_event(by_address, unit, action == FREE_REQUESTED, count, last)
    reusable = _first_event(by_address, unit, action == FREE_COMPLETED, count, last)
    freed = np.minimum(freed, reusable)
    if (action == FREE_REQUESTED).any():
        freed[action[first] == FREE_COMPLETED] = BEFORE  # asked for before the first event
    if not (action == FREE_COMPLETED).any():
        reusable = _as_told_by_blocks(device, address[first], freed, reusable)
    head = by_address[first]
    known = events.action[head] == ALLOC
    missed = _close_overlaps(address[first], head, freed, reusable)
    unborn_later = int((~known & ~other[first]).sum())
    keep = known | other[first]
    requested = events.size[head]
    lifetimes = Lifetimes(
        address=address[first],
        requested=requested,
        size=round_sizes(requested, settings),
        made=np.where(known, head, BEFORE),
        freed=freed,
        reusable=reusable,
        stack=np.where(known, events.stack[head], NO_STACK).astype(np.int32),
        stream=events.stream[head],
        pool=events.pool[head],
        category=events.category[head],
        num_events=last,
        notes=_notes(missed, unborn_later),
    )
    return lifetimes if keep.all() else _only(lifetimes, keep)


def _as_told_by_blocks(device: DeviceSnapshot, address: Ints, freed: Ints, reusable: Ints) -> Ints:
    """Without events of completed frees: pending is what the blocks say, all else was free as soon as asked for."""
    pending = device.blocks.address[device.blocks.state == PENDING]
    last_of_address = np.append(address[1:] != address[:-1], [True])[: len(address)]
    return np.where(np.isin(address, pending) & last_of_address, reusable, freed)


def _first_event(
    rows: Ints, unit: npt.NDArray[np.int64], which: npt.NDArray[np.bool_], count: int, none: int
) -> Ints:
    """The first event of a kind in each unit; rows of a unit are in order."""
    first_event = np.full(count, none, np.int64)
    at = np.flatnonzero(which)[::-1]
    first_event[unit[at]] = rows[at]  # backwards, so that the first is written last
    return first_event


def _close_overlaps(address: Ints, head: Ints, freed: Ints, reusable: Ints) -> int:
    """What has no free before its address is made again must have been freed by then; returns how many."""
    again = address[1:] == address[:-1]
    missed = again & (reusable[:-1] > head[1:])
    reusable[:-1][missed] = head[1:][missed]
    np.minimum(freed, reusable, out=freed)
    return int(missed.sum())


def _notes(missed: int, unborn: int) -> list[str]:
    notes = []
    if missed:
        notes.append(
            f"{counted(missed, 'free')} are missing from the history; the address was made again meanwhile"
        )
    if unborn:
        notes.append(
            f"{counted(unborn, 'allocation')} are missing from the history, though their frees are in it"
        )
    return notes


def _only(lifetimes: Lifetimes, keep: npt.NDArray[np.bool_]) -> Lifetimes:
    columns: dict[str, Any] = {
        name: value[keep] for name, value in vars(lifetimes).items() if isinstance(value, np.ndarray)
    }
    return replace(lifetimes, **columns)


def _with_blocks(lifetimes: Lifetimes, device: DeviceSnapshot) -> Lifetimes:
    """Take sizes at the end from the file, and add what no event tells of."""
    blocks = device.blocks
    used = np.flatnonzero(blocks.state != FREE)
    if not len(device.segments):
        return lifetimes
    at_end = np.flatnonzero(lifetimes.reusable == lifetimes.num_events)
    at_end = at_end[np.argsort(lifetimes.address[at_end], kind="stable")]
    place = np.searchsorted(lifetimes.address[at_end], blocks.address[used])
    place = np.minimum(place, max(len(at_end) - 1, 0))
    matched = (
        lifetimes.address[at_end][place] == blocks.address[used]
        if len(at_end)
        else np.zeros(len(used), np.bool_)
    )
    size = lifetimes.size.copy()
    size[at_end[place[matched]]] = blocks.size[used[matched]]
    lost = len(at_end) - int(matched.sum())
    notes = [*lifetimes.notes]
    if lost:
        notes.append(
            f"{counted(lost, 'allocation')} of the history are in no block: it was stopped before the snapshot was taken"
        )
    return _appended(replace(lifetimes, size=size, notes=notes), device, used[~matched])


def _appended(lifetimes: Lifetimes, device: DeviceSnapshot, extra: npt.NDArray[np.int64]) -> Lifetimes:
    """Add blocks that were in use from beginning to end."""
    blocks, last = device.blocks, lifetimes.num_events
    segment = blocks.segment[extra]
    always = np.full(len(extra), last, np.int64)
    pending = blocks.state[extra] == PENDING
    return replace(
        lifetimes,
        address=np.concatenate((lifetimes.address, blocks.address[extra])),
        requested=np.concatenate((lifetimes.requested, blocks.requested[extra])),
        size=np.concatenate((lifetimes.size, blocks.size[extra])),
        made=np.concatenate((lifetimes.made, np.full(len(extra), BEFORE))),
        freed=np.concatenate((lifetimes.freed, np.where(pending, BEFORE, always))),
        reusable=np.concatenate((lifetimes.reusable, always)),
        stack=np.concatenate((lifetimes.stack, blocks.stack[extra])),
        stream=np.concatenate((lifetimes.stream, device.segments.stream[segment])),
        pool=np.concatenate((lifetimes.pool, device.segments.pool[segment])),
        category=np.concatenate((lifetimes.category, np.full(len(extra), -1, np.int32))),
    )
