"""Where every byte lay at one instant, and how much of what was free could be used.

At the end the file tells. Before, segments are known from the events that took and returned them, undone backwards from the
end, and blocks from the allocations of that instant. What the allocator does not split off belongs to the block before: in
a segment of the large pool, a gap of at most 1 MiB behind a block in use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyrometer.memory.snapshots.allocator.settings import AllocatorSettings
from pyrometer.memory.snapshots.allocator.sizes import LARGE_ROUND, SMALL_LIMIT, SMALL_SEGMENT
from pyrometer.memory.snapshots.lifetimes import Lifetimes
from pyrometer.memory.snapshots.snapshot import (
    FREE,
    PENDING,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    DeviceSnapshot,
    Events,
    Ints,
)

_TAKEN, _RETURNED = (SEGMENT_ALLOC, SEGMENT_MAP), (SEGMENT_FREE, SEGMENT_UNMAP)


@dataclass(frozen=True)
class Held:
    """What the allocator held at one instant, in order of address."""

    address: Ints
    size: Ints
    stream: Ints
    large: npt.NDArray[np.bool_]
    expandable: npt.NDArray[np.bool_]
    pool: npt.NDArray[np.int32]


@dataclass(frozen=True)
class Gaps:
    """Free stretches at one instant."""

    size: Ints
    segment: npt.NDArray[np.int64]
    """Number in `Held`."""
    address: Ints


@dataclass(frozen=True)
class Layout:
    """One instant."""

    held: Held
    gaps: Gaps
    allocated_bytes: int
    pending_bytes: int
    requested_bytes: int
    """Of what is allocated."""
    cached_whole_bytes: int
    """In segments without anything in use, and in pages of expandable segments: what empty_cache returns."""
    outside_bytes: int
    """In use according to the events, but in no segment that is known."""

    @property
    def reserved_bytes(self) -> int:
        """All that was held."""
        return int(self.held.size.sum())

    @property
    def free_bytes(self) -> int:
        """Free within what was held."""
        return int(self.gaps.size.sum())

    def usable_gaps(self, *, large: bool, stream: int, pool: int) -> Ints:
        """Sizes of the free stretches that a request may use: of its stream and pools only."""
        held, of = self.held, self.gaps.segment
        fits = (held.large[of] == large) & (held.stream[of] == stream) & (held.pool[of] == pool)
        sizes: Ints = self.gaps.size[fits]
        return sizes


def reserved_over_time(device: DeviceSnapshot) -> Ints:
    """Held bytes before the first event and after each, counted backwards from the end."""
    events = device.events
    change = np.zeros(len(events) + 1, np.int64)
    taken = np.flatnonzero(np.isin(events.action, _TAKEN))
    returned = np.flatnonzero(np.isin(events.action, _RETURNED))
    change[taken + 1] = events.size[taken]
    change[returned + 1] = -events.size[returned]
    total: Ints = np.cumsum(change)
    return total + (int(device.segments.size.sum()) - int(total[-1]) if len(device.segments) else 0)


def layout_at_end(device: DeviceSnapshot) -> Layout:
    """As the file has it."""
    segments, blocks = device.segments, device.blocks
    held = Held(
        segments.address, segments.size, segments.stream, segments.large, segments.expandable, segments.pool
    )
    free = blocks.state == FREE
    pending = blocks.state == PENDING
    used = ~free & ~pending
    gaps = Gaps(blocks.size[free], blocks.segment[free].astype(np.int64), blocks.address[free])
    busy = np.zeros(len(segments), np.bool_)
    busy[blocks.segment[~free]] = True
    return Layout(
        held=held,
        gaps=gaps,
        allocated_bytes=int(blocks.size[used].sum()),
        pending_bytes=int(blocks.size[pending].sum()),
        requested_bytes=int(blocks.requested[used].sum()),
        cached_whole_bytes=_returnable(held, gaps, busy),
        outside_bytes=0,
    )


def layouts_after(
    device: DeviceSnapshot, lifetimes: Lifetimes, settings: AllocatorSettings, instants: list[int]
) -> dict[int, Layout]:
    """The layout after each of some events; -1 is before the first."""
    layouts = {}
    for event, held in _held_at(device, sorted(set(instants), reverse=True)):
        layouts[event] = _layout(held, lifetimes, settings, event)
    return layouts


def _held_at(device: DeviceSnapshot, instants: list[int]) -> list[tuple[int, Held]]:
    """Undo the events that took and returned segments, from the end to each instant."""
    undoing = _Undoing(device)
    events = device.events
    changes = np.flatnonzero(np.isin(events.action, (*_TAKEN, *_RETURNED)))[::-1].tolist()
    found, at = [], 0
    for instant in instants:
        while at < len(changes) and changes[at] > instant:
            undoing.undo(events, changes[at])
            at += 1
        found.append((instant, undoing.held()))
    return found


class _Undoing:
    """Stretches of memory held, going back in time."""

    def __init__(self, device: DeviceSnapshot) -> None:
        segments = device.segments
        columns = (
            segments.address,
            segments.address + segments.size,
            segments.stream,
            segments.large,
            segments.expandable,
            segments.pool,
        )
        rows = zip(*(column.tolist() for column in columns), strict=True)
        self._rows: dict[int, tuple[int, ...]] = {row[0]: row for row in rows}

    def undo(self, events: Events, event: int) -> None:
        """Go back before one event."""
        begin, size = int(events.address[event]), int(events.size[event])
        action = int(events.action[event])
        expandable = action in (SEGMENT_MAP, SEGMENT_UNMAP)
        if action in _RETURNED:
            large = size > SMALL_SEGMENT if not expandable else self._large_near(begin, size)
            pool = int(events.pool[event])
            self._rows[begin] = (begin, begin + size, int(events.stream[event]), large, expandable, pool)
        elif expandable:
            self._cut(begin, begin + size)
        else:
            self._rows.pop(begin, None)

    def _large_near(self, begin: int, size: int) -> bool:
        """An expandable segment belongs to one pool: as its other pages, or by the size of a page."""
        for row in self._rows.values():
            if row[4] and (row[1] == begin or row[0] == begin + size):
                return bool(row[3])
        return size > SMALL_SEGMENT

    def _cut(self, begin: int, end: int) -> None:
        """Take out a stretch of expandable segments."""
        for row in [row for row in self._rows.values() if row[0] < end and row[1] > begin]:
            del self._rows[row[0]]
            if row[0] < begin:
                self._rows[row[0]] = (row[0], begin, *row[2:])
            if row[1] > end:
                self._rows[end] = (end, row[1], *row[2:])

    def held(self) -> Held:
        """What is held now, with stretches that touch put together where they may."""
        joined: list[list[int]] = []
        for row in sorted(self._rows.values()):
            last = joined[-1] if joined else None
            if last and last[4] and row[4] and last[1] == row[0] and last[2:4] == list(row[2:4]):
                last[1] = row[1]
            else:
                joined.append(list(row))
        columns = np.array(joined, np.int64).reshape(-1, 6)
        return Held(
            address=columns[:, 0],
            size=columns[:, 1] - columns[:, 0],
            stream=columns[:, 2],
            large=columns[:, 3] > 0,
            expandable=columns[:, 4] > 0,
            pool=columns[:, 5].astype(np.int32),
        )


def _layout(held: Held, lifetimes: Lifetimes, settings: AllocatorSettings, event: int) -> Layout:
    there = np.flatnonzero(lifetimes.held_after(event))
    there = there[np.argsort(lifetimes.address[there], kind="stable")]
    segment = np.searchsorted(held.address, lifetimes.address[there], side="right") - 1
    ends = np.append(held.address + held.size, 0)  # number -1, before all segments, ends at 0
    within = lifetimes.address[there] < ends[segment]
    outside = int(lifetimes.size[there[~within]].sum())
    there, segment = there[within], segment[within]
    begin = lifetimes.address[there]
    limit = (held.address + held.size)[segment]
    same = segment[1:] == segment[:-1]
    limit[:-1][same] = begin[1:][same]
    size = _with_slack(lifetimes.size[there], limit - begin, held, segment, settings)
    gaps = _gaps(held, segment, begin, begin + size, limit)
    pending = lifetimes.freed[there] <= event
    busy = np.zeros(len(held.address), np.bool_)
    busy[segment] = True
    return Layout(
        held=held,
        gaps=gaps,
        allocated_bytes=int(size[~pending].sum()),
        pending_bytes=int(size[pending].sum()),
        requested_bytes=int(np.minimum(lifetimes.requested[there], size)[~pending].sum()),
        cached_whole_bytes=_returnable(held, gaps, busy),
        outside_bytes=outside,
    )


def _with_slack(
    size: Ints, room: Ints, held: Held, segment: npt.NDArray[np.int64], settings: AllocatorSettings
) -> Ints:
    """Blocks with what was not split off behind them."""
    rest = room - size
    plain = held.large[segment] & ~held.expandable[segment]
    whole = plain & (rest <= SMALL_LIMIT)
    if settings.max_split_bytes is not None:
        whole |= plain & (size >= settings.max_split_bytes)
    return np.where(whole, room, np.minimum(size, room))


def _gaps(held: Held, segment: npt.NDArray[np.int64], begin: Ints, end: Ints, limit: Ints) -> Gaps:
    """Free stretches: before the first block of a segment, behind each, and empty segments whole."""
    first = np.ones(len(segment), np.bool_)
    first[1:] = segment[1:] != segment[:-1]
    empty = np.ones(len(held.address), np.bool_)
    empty[segment] = False
    address = np.concatenate((held.address[segment[first]], end, held.address[empty]))
    size = np.concatenate((begin[first] - held.address[segment[first]], limit - end, held.size[empty]))
    of = np.concatenate((segment[first], segment, np.flatnonzero(empty)))
    keep = size > 0
    return Gaps(size[keep], of[keep], address[keep])


def _returnable(held: Held, gaps: Gaps, busy: npt.NDArray[np.bool_]) -> int:
    """What empty_cache would give back: empty segments, and whole pages of expandable ones."""
    expandable = held.expandable[gaps.segment]
    whole = int(gaps.size[~expandable & ~busy[gaps.segment]].sum())
    page = np.where(held.large[gaps.segment], 10 * LARGE_ROUND, SMALL_SEGMENT)[expandable]
    begin = gaps.address[expandable] - held.address[gaps.segment[expandable]]
    end = begin + gaps.size[expandable]
    pages = np.maximum(end // page - -(-begin // page), 0) * page
    return whole + int(pages.sum())
