"""Blocks of the simulated allocator, and the pools in which free ones wait."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field


@dataclass(eq=False)
class Block:
    """A stretch of a segment."""

    address: int
    size: int
    pool: Pool
    stream: int
    base: int
    """Where its segment begins."""
    in_use: bool = False
    mapped: bool = True
    expandable: bool = False
    requested: int = 0
    before: Block | None = None
    after: Block | None = None
    born_at_call: int = 0

    @property
    def is_split(self) -> bool:
        """Whether it is only a part of its segment."""
        return self.before is not None or self.after is not None


@dataclass(eq=False)
class Pool:
    """Free blocks of one size class of one pool, by stream."""

    small: bool
    private: bool = False
    free: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    unmapped: dict[int, list[int]] = field(default_factory=dict)
    blocks: dict[int, Block] = field(default_factory=dict)
    calls: int = 0

    def add(self, block: Block) -> None:
        """Make a block available."""
        insort(self.free.setdefault(block.stream, []), (block.size, block.address))
        self.blocks[block.address] = block
        block.born_at_call = self.calls

    def remove(self, block: Block) -> None:
        """Take a block out."""
        row = self.free[block.stream]
        del row[bisect_left(row, (block.size, block.address))]
        del self.blocks[block.address]

    def add_unmapped(self, block: Block) -> None:
        """Address space without memory behind it."""
        insort(self.unmapped.setdefault(block.stream, []), block.address)
        self.blocks[block.address] = block

    def remove_unmapped(self, block: Block) -> None:
        """No longer without memory, or gone."""
        self.unmapped[block.stream].remove(block.address)
        del self.blocks[block.address]

    def free_blocks(self) -> list[Block]:
        """All that is available, of all streams."""
        return [self.blocks[address] for row in self.free.values() for _, address in row]


def room_from(block: Block | None, size: int) -> int:
    """Free and unmapped bytes in a row, as far as it takes."""
    room = 0
    while room < size and block is not None and not block.in_use:
        room += block.size
        block = block.after
    return room
