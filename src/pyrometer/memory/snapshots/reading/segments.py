"""Segments and their blocks as columns, whatever the generation of the file."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from pyrometer.memory.snapshots.reading.columns import (
    MAX_ADDRESS,
    MAX_BYTES,
    MAX_DEVICES,
    Interned,
    StackTable,
)
from pyrometer.memory.snapshots.snapshot import ALLOCATED, FREE, PENDING, Blocks, Segments
from pyrometer.quantity import counted, format_bytes

_STATES = {
    "active_allocated": ALLOCATED,
    "active_pending_free": PENDING,
    "active_awaiting_free": PENDING,
    "inactive": FREE,
}
_SMALL_SEGMENT = 2 << 20

Row = tuple[int, ...]


class SegmentTable:
    """Takes segments as the file has them.

    What was read is emptied: it takes no more memory, and one that is there again by reference is found out.
    """

    def __init__(self, stacks: StackTable, pools: Interned) -> None:
        self._stacks, self._pools = stacks, pools
        self._rows: dict[int, list[tuple[Row, list[Row]]]] = defaultdict(list)
        self._uneven = 0
        self._overfull = 0
        self._beyond = 0
        self._unknown = 0

    @property
    def notes(self) -> list[str]:
        """What was odd."""
        notes = []
        if self._uneven:
            notes.append(
                f"the blocks of {counted(self._uneven, 'segment')} do not fill them; the rest counts as free"
            )
        if self._overfull:
            notes.append(
                f"the blocks of {counted(self._overfull, 'segment')} are together larger than the segment, by "
                f"{format_bytes(self._beyond)} in all; such a segment counts as large as its blocks"
            )
        if self._unknown:
            notes.append(f"{counted(self._unknown, 'block')} have an unknown state and count as in use")
        return notes

    def devices(self) -> list[int]:
        """Which devices have segments."""
        return list(self._rows)

    def add(self, raw: Any) -> None:
        """Take one segment."""
        if not isinstance(raw, dict):
            raise TypeError(f"{type(raw).__name__} where a segment belongs")
        size = _size(raw, "segment", "total_size")
        if not size:
            return
        address = int(raw.get("address") or 0)
        if not (0 <= size <= MAX_BYTES and 0 <= address <= MAX_ADDRESS):
            raise ValueError(f"a segment of {size} bytes at {address}")
        device = int(raw.get("device", 0))
        if not 0 <= device < MAX_DEVICES:
            raise ValueError(f"a segment on device {device}; devices are 0 to {MAX_DEVICES - 1}")
        blocks = self._blocks(raw, address)
        filled = sum(block[1] for block in blocks)
        if filled < size:
            self._uneven += bool(blocks)
            blocks.append((address + filled, size - filled, 0, FREE, 0))
        self._overfull += filled > size
        self._beyond += max(0, filled - size)
        kind = raw.get("segment_type")
        row = (
            address,
            max(size, filled),
            int(raw.get("stream", 0)),
            int(kind == "large" if kind else size > _SMALL_SEGMENT),
            int(bool(raw.get("is_expandable", False))),
            self._pools.number(raw["segment_pool_id"]) if "segment_pool_id" in raw else 0,
            self._stacks.number(raw.get("frames")),
        )
        self._rows[device].append((row, blocks))
        raw.clear()

    def _blocks(self, raw: dict[str, Any], address: int) -> list[Row]:
        """Address, size, requested, state and stack of each; the oldest files tell addresses only by order."""
        blocks: list[Row] = []
        for block in raw.get("blocks", ()):
            size = _size(block, "block", "size")
            if not 0 <= size <= MAX_BYTES:
                raise ValueError(f"a block of {size} bytes")
            state = _STATES.get(block.get("state", ""))
            self._unknown += state is None
            state = ALLOCATED if state is None else state
            stack, requested = self._use(block, size) if state != FREE else (0, 0)
            blocks.append((int(block.get("address", address)), size, requested, state, stack))
            address += size
            block.clear()
        return blocks

    def _use(self, block: dict[str, Any], size: int) -> tuple[int, int]:
        """Who allocated a block in use, and how much was asked for."""
        history = block.get("history")
        first: Any = history[0] if history else {}
        frames = block.get("frames", first.get("frames"))
        requested = int(block.get("requested_size", first.get("real_size", size)))
        return self._stacks.number(frames), min(requested, size)

    def finished(self, device: int) -> tuple[Segments, Blocks]:
        """The columns of one device, in order of address."""
        rows = sorted(self._rows.get(device, ()), key=lambda row: row[0][0])
        heads = np.array([head for head, _ in rows], np.int64).reshape(-1, 7)
        body = [(i, *block) for i, (_, blocks) in enumerate(rows) for block in blocks]
        columns = np.array(body, np.int64).reshape(-1, 6)
        segments = Segments(
            address=heads[:, 0],
            size=heads[:, 1],
            stream=heads[:, 2],
            large=heads[:, 3] > 0,
            expandable=heads[:, 4] > 0,
            pool=heads[:, 5].astype(np.int32),
            frame_stack=heads[:, 6].astype(np.int32),
        )
        blocks = Blocks(
            segment=columns[:, 0].astype(np.int32),
            address=columns[:, 1],
            size=columns[:, 2],
            requested=columns[:, 3],
            state=columns[:, 4].astype(np.uint8),
            stack=columns[:, 5].astype(np.int32),
        )
        return segments, blocks


def _size(raw: dict[str, Any], what: str, key: str) -> int:
    if key not in raw:
        raise ValueError(f"a {what} without {key}, or one that is there again by reference")
    return int(raw[key])
