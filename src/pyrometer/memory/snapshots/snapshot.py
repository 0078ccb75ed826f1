"""A snapshot in memory: columns of numbers, with every call stack kept once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

ACTIONS = (
    "alloc",
    "free_requested",
    "free_completed",
    "segment_alloc",
    "segment_free",
    "segment_map",
    "segment_unmap",
    "snapshot",
    "oom",
)
(
    ALLOC,
    FREE_REQUESTED,
    FREE_COMPLETED,
    SEGMENT_ALLOC,
    SEGMENT_FREE,
    SEGMENT_MAP,
    SEGMENT_UNMAP,
    DUMPED,
    OOM,
) = range(9)
OTHER_ACTION = 255

ALLOCATED, PENDING, FREE = range(3)
"""State of a block: in use, freed but perhaps still used by another stream, free."""

DEFAULT_POOL = (0, 0)
"""Number 0 of a snapshot's pools; all others are private, such as those of CUDA graphs."""

NO_STACK = 0
"""Number of the empty call stack."""


class Frame(NamedTuple):
    """One function on a call stack."""

    name: str
    file: str
    line: int


@dataclass(frozen=True)
class Events:
    """What the allocator did, in order; all columns are equally long."""

    action: npt.NDArray[np.uint8]
    """Number in `ACTIONS`, or `OTHER_ACTION`."""
    address: Ints
    """Of an OOM, the bytes that the device still had free."""
    size: Ints
    stream: Ints
    time_us: Ints
    """-1 where the file has no clock."""
    stack: npt.NDArray[np.int32]
    pool: npt.NDArray[np.int32]
    """Number in `Snapshot.pools`; 0 where the file does not tell."""
    category: npt.NDArray[np.int32]
    """Number in `Snapshot.labels`; -1 where the file does not tell."""

    def __len__(self) -> int:
        return len(self.action)


@dataclass(frozen=True)
class Segments:
    """What the allocator held when the snapshot was taken, in order of address."""

    address: Ints
    size: Ints
    stream: Ints
    large: npt.NDArray[np.bool_]
    expandable: npt.NDArray[np.bool_]
    pool: npt.NDArray[np.int32]
    frame_stack: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True)
class Blocks:
    """The pieces that the segments were cut into, in order of address."""

    segment: npt.NDArray[np.int32]
    address: Ints
    size: Ints
    requested: Ints
    """0 for free blocks, whatever the file says: what it says is of their last use."""
    state: npt.NDArray[np.uint8]
    stack: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.address)


@dataclass(frozen=True)
class DeviceSnapshot:
    """One device."""

    index: int
    events: Events
    segments: Segments
    blocks: Blocks


@dataclass(frozen=True)
class Annotation:
    """A named stretch that the program marked, such as a step of the optimizer."""

    name: str
    begins: bool
    device: int
    time_us: int


@dataclass(frozen=True)
class Snapshot:
    """A whole file."""

    path: str
    devices: list[DeviceSnapshot]
    stacks: list[tuple[int, ...]]
    """Numbers in `frames`, innermost first."""
    frames: list[Frame]
    pools: list[tuple[int, int]]
    labels: list[str]
    settings: dict[str, Any] = field(default_factory=dict)
    """As the file has them; empty where it has none."""
    annotations: list[Annotation] = field(default_factory=list)
    has_history: bool = True
    """Whether the file has a place for events at all."""
    notes: list[str] = field(default_factory=list)
    """What was odd about the file."""
