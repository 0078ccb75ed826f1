"""torch's caching allocator on paper: what it would reserve for a sequence of requests, under any settings.

The rules are those of `c10/cuda/CUDACachingAllocator.cpp` (torch 2.13) for the default pool, private pools and streams:
rounding, best fit by size then address, splitting, merging, segments of 2 MiB, 20 MiB or the rounded size, limits to
splitting, collection by age, expandable segments mapped page by page, and what is released before giving up.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Literal

from pyrometer.memory.snapshots.allocator.blocks import Block, Pool, room_from
from pyrometer.memory.snapshots.allocator.settings import AllocatorSettings
from pyrometer.memory.snapshots.allocator.sizes import (
    MIN_BLOCK,
    SMALL_LIMIT,
    SMALL_SEGMENT,
    round_size,
    segment_size,
)

Happening = Literal[
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
]
Observer = Callable[[Happening, int, int, "Block"], None]
_SEGMENT_GAP = 2 << 20
_EXPANDABLE_SPACE = 1 << 51
"""Addresses that an expandable segment may grow over; the real one takes a little more than the device has."""
_UNLIMITED = 1 << 62


class CachingAllocator:
    """The allocator of one device.

    Args:
        settings: as they would be set before the first allocation.
        capacity_bytes: what the device can give; without limit when `None`.
        observer: told of everything that a snapshot would record: what, address, bytes, block.
    """

    def __init__(
        self,
        settings: AllocatorSettings,
        capacity_bytes: int | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.settings = settings
        self.capacity_bytes = capacity_bytes
        self.reserved_bytes = self.peak_reserved_bytes = 0
        self.allocated_bytes = self.peak_allocated_bytes = 0
        self.num_device_allocs = self.num_device_frees = self.num_retries = 0
        self.segments: dict[int, Block] = {}
        """First block of every segment, by the segment's address; of expandable ones too, mapped or not."""
        self._pools: dict[tuple[int, bool], Pool] = {}
        self._next_address = 0x7F00_0000_0000
        self._max_split = settings.max_split_bytes or _UNLIMITED
        self._allowed = self._allowed_bytes()
        self._observer = observer

    def malloc(self, size: int, stream: int = 0, pool: int = 0) -> Block | None:
        """A block for so many bytes; `None` where torch would raise OutOfMemoryError.

        Args:
            size: as requested.
            stream: whose blocks may be used.
            pool: 0 for the default, any other number for a private pool.
        """
        rounded = round_size(size, self.settings)
        blocks = self._pool(pool, rounded)
        block = self._cached(blocks, stream, rounded)
        if block is None:
            self._collect_old()
            block = self._new_or_retry(blocks, stream, rounded)
        if block is None:
            return None
        self._place(block, blocks, rounded)
        block.in_use, block.requested = True, size
        self.allocated_bytes += block.size
        self.peak_allocated_bytes = max(self.peak_allocated_bytes, self.allocated_bytes)
        self._tell("alloc", block.address, size, block)
        return block

    def request_free(self, block: Block) -> None:
        """No longer in use by the program, but perhaps by another stream."""
        self.allocated_bytes -= block.size
        self._tell("free_requested", block.address, block.requested, block)

    def complete_free(self, block: Block) -> None:
        """Available again, put together with free neighbours."""
        self._tell("free_completed", block.address, block.requested, block)
        block.in_use = False
        self._merge(block)
        block.pool.add(block)

    def free(self, block: Block) -> None:
        """Both at once."""
        self.request_free(block)
        self.complete_free(block)

    def empty_cache(self) -> None:
        """Give back every segment without anything in use; private pools keep theirs."""
        for (number, _), pool in sorted(self._pools.items(), key=lambda entry: entry[0][1]):
            if number == 0:
                self._release_all(pool)

    def _pool(self, number: int, rounded: int) -> Pool:
        small = rounded <= SMALL_LIMIT
        if (number, small) not in self._pools:
            self._pools[number, small] = Pool(small, private=number != 0)
        return self._pools[number, small]

    def _cached(self, pool: Pool, stream: int, size: int) -> Block | None:
        """Best fit among what is free."""
        pool.calls += 1
        row = pool.free.get(stream, [])
        at = bisect_left(row, (size, -1))
        if at == len(row):
            return None
        block = pool.blocks[row[at][1]]
        if block.expandable:
            block = self._least_growing(pool, row, at)
        if size < self._max_split <= block.size:
            return None
        if size >= self._max_split and block.size >= size + self.settings.max_non_split_rounding_bytes:
            return None
        pool.remove(block)
        return block

    @staticmethod
    def _least_growing(pool: Pool, row: list[tuple[int, int]], at: int) -> Block:
        """What could still grow counts as large as it can become."""

        def room(block: Block) -> int:
            after = block.after
            return block.size + (after.size if after is not None and not after.mapped else 0)

        block = pool.blocks[row[at][1]]
        while block.expandable and at + 1 < len(row):
            other = pool.blocks[row[at + 1][1]]
            if room(other) >= room(block):
                break
            block, at = other, at + 1
        return block

    def _new_or_retry(self, pool: Pool, stream: int, size: int) -> Block | None:
        block = self._new(pool, stream, size)
        if block is None and self._release_oversize(pool, stream, size):
            block = self._new(pool, stream, size)
        if block is None:
            self.num_retries += 1
            self.empty_cache()
            block = self._new(pool, stream, size)
        return block

    def _new(self, pool: Pool, stream: int, size: int) -> Block | None:
        """Ask the device for more."""
        want = segment_size(size, self.settings)
        if self._beyond(want, self._allowed):
            return None
        if self.settings.expandable_segments:
            return self._grow(pool, stream, size)
        if self._beyond(want, self.capacity_bytes):
            return None
        block = Block(self._next_address, want, pool, stream, self._next_address)
        self._next_address += -(-want // _SEGMENT_GAP) * _SEGMENT_GAP + _SEGMENT_GAP
        self.segments[block.address] = block
        self._reserve(want)
        self._tell("segment_alloc", block.address, want, block)
        return block

    def _place(self, block: Block, pool: Pool, size: int) -> None:
        """Split off what is more than asked for, where that is done."""
        rest = block.size - size
        if pool.small or self.settings.expandable_segments:
            split = rest >= MIN_BLOCK
        else:
            split = size < self._max_split and rest > SMALL_LIMIT
        if not split:
            return
        remaining = Block(
            block.address + size, rest, pool, block.stream, block.base, expandable=block.expandable
        )
        remaining.before, remaining.after = block, block.after
        if block.after is not None:
            block.after.before = remaining
        block.after, block.size = remaining, size
        pool.add(remaining)

    def _merge(self, block: Block) -> None:
        """Take in free neighbours, of the same kind of memory."""
        for other in (block.before, block.after):
            if other is None or other.in_use or other.mapped != block.mapped:
                continue
            (block.pool.remove if other.mapped else block.pool.remove_unmapped)(other)
            if other is block.before:
                block.address, block.before = other.address, other.before
                if block.before is not None:
                    block.before.after = block
            else:
                block.after = other.after
                if block.after is not None:
                    block.after.before = block
            block.size += other.size
        self._note_head(block)

    def _note_head(self, block: Block) -> None:
        if block.before is None:
            self.segments[block.base] = block

    def _release_all(self, pool: Pool) -> None:
        for block in pool.free_blocks():
            if block.expandable:
                self._unmap(block)
            elif not block.is_split:
                self._release(block)

    def _release(self, block: Block) -> None:
        block.pool.remove(block)
        del self.segments[block.base]
        self.reserved_bytes -= block.size
        self.num_device_frees += 1
        self._tell("segment_free", block.address, block.size, block)

    def _release_oversize(self, pool: Pool, stream: int, size: int) -> bool:
        """With a limit to splitting: give back just enough large blocks."""
        if self._max_split == _UNLIMITED:
            return False
        want = max(size, self._max_split)
        row = pool.free.get(stream, [])
        at = bisect_left(row, (want, -1))
        if at < len(row):
            block = pool.blocks[row[at][1]]
            if block.expandable or block.is_split:
                return False
            self._release(block)
            return True
        released = 0
        for length, address in reversed(row[:]):
            if released >= want or length < self._max_split:
                break
            block = pool.blocks[address]
            if not block.expandable and not block.is_split:
                released += length
                self._release(block)
        return released >= want

    def _collect_old(self) -> None:
        """With a threshold and a limit for the process: give back what was not used for longest."""
        threshold = self.settings.garbage_collection_threshold
        if not threshold or self._allowed is None:
            return
        target = self.reserved_bytes - int(threshold * self._allowed)
        large = self._pools.get((0, False))
        if target <= 0 or large is None:
            return
        candidates = [block for block in large.free_blocks() if not block.is_split and not block.expandable]
        candidates.sort(key=lambda block: (block.size, block.address))
        reclaimed = 0
        while reclaimed < target and candidates:
            ages = [large.calls - block.born_at_call for block in candidates]
            limit = sum(ages) / len(ages)
            old = [block for block, age in zip(candidates, ages, strict=True) if age >= limit]
            for block in old:
                reclaimed += block.size
                self._release(block)
            candidates = [block for block in candidates if block not in old]

    def _grow(self, pool: Pool, stream: int, size: int) -> Block | None:
        """Map pages behind an expandable segment until the block is large enough."""
        block = self._growable(pool, stream, size)
        if not block.mapped:
            grown = self._map(block, min(block.size, size))
            if grown is None:
                return None
            block = grown
        while block.size < size:
            after = block.after
            assert after is not None, "a growable block is followed by unmapped space"
            grown = self._map(after, min(size - block.size, after.size))
            if grown is None:
                return None
            block = grown
        pool.remove(block)
        return block

    def _growable(self, pool: Pool, stream: int, size: int) -> Block:
        """The lowest address with room enough, or a new segment."""
        for address in pool.unmapped.get(stream, []):
            block = pool.blocks[address]
            if block.before is not None and not block.before.in_use:
                block = block.before
            if room_from(block, size) >= size:
                return block
        block = Block(
            self._next_address,
            _EXPANDABLE_SPACE,
            pool,
            stream,
            self._next_address,
            mapped=False,
            expandable=True,
        )
        self._next_address += _EXPANDABLE_SPACE + _SEGMENT_GAP
        self.segments[block.address] = block
        pool.add_unmapped(block)
        return block

    def _map(self, block: Block, size: int) -> Block | None:
        """Put memory behind the beginning of a block; returns it, put together with free neighbours."""
        page = self._page(block.pool)
        mapped = -(-size // page) * page
        if self._beyond(mapped, self._allowed) or self._beyond(mapped, self.capacity_bytes):
            return None
        pool = block.pool
        pool.remove_unmapped(block)
        block.mapped = True
        if mapped < block.size:
            rest = Block(
                block.address + mapped,
                block.size - mapped,
                pool,
                block.stream,
                block.base,
                mapped=False,
                expandable=True,
            )
            rest.before, rest.after = block, block.after
            if block.after is not None:
                block.after.before = rest
            block.after, block.size = rest, mapped
            pool.add_unmapped(rest)
        begin = block.address
        self._merge(block)
        pool.add(block)
        self._reserve(mapped)
        self._tell("segment_map", begin, mapped, block)
        return block

    def _unmap(self, block: Block) -> None:
        """Take the memory from behind the whole pages of a free block."""
        page, pool = self._page(block.pool), block.pool
        base = block.base
        begin = base + -(-(block.address - base) // page) * page
        end = base + (block.address + block.size - base) // page * page
        if end <= begin:
            return
        pool.remove(block)
        if begin > block.address:
            self._cut_before(block, begin)
        if end < block.address + block.size:
            self._cut_after(block, end)
        block.mapped = False
        self.reserved_bytes -= block.size
        self.num_device_frees += 1
        self._tell("segment_unmap", block.address, block.size, block)
        self._merge(block)
        pool.add_unmapped(block)
        if not block.is_split:
            pool.remove_unmapped(block)
            del self.segments[block.base]

    def _cut_before(self, block: Block, begin: int) -> None:
        part = Block(
            block.address, begin - block.address, block.pool, block.stream, block.base, expandable=True
        )
        part.before, part.after = block.before, block
        if block.before is not None:
            block.before.after = part
        self._note_head(part)
        block.before, block.address, block.size = part, begin, block.size - part.size
        block.pool.add(part)

    def _cut_after(self, block: Block, end: int) -> None:
        part = Block(
            end, block.address + block.size - end, block.pool, block.stream, block.base, expandable=True
        )
        part.before, part.after = block, block.after
        if block.after is not None:
            block.after.before = part
        block.after, block.size = part, block.size - part.size
        block.pool.add(part)

    def _page(self, pool: Pool) -> int:
        return SMALL_SEGMENT if pool.small else self.settings.large_segment_bytes

    def _reserve(self, size: int) -> None:
        self.num_device_allocs += 1
        self.reserved_bytes += size
        self.peak_reserved_bytes = max(self.peak_reserved_bytes, self.reserved_bytes)

    def _beyond(self, size: int, limit: int | None) -> bool:
        return limit is not None and self.reserved_bytes + size > limit

    def _allowed_bytes(self) -> int | None:
        """What the process may take; torch knows a limit only once a fraction below one was set."""
        fraction = self.settings.per_process_memory_fraction
        if self.capacity_bytes is None or fraction >= 1:
            return None
        return int(self.capacity_bytes * fraction)

    def _tell(self, what: Happening, address: int, size: int, block: Block) -> None:
        if self._observer is not None:
            self._observer(what, address, size, block)
