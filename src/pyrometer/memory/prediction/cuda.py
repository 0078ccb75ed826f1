"""CUDA's rules laid over a log of the CPU: rounded blocks, and the segments that the caching allocator takes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyrometer.memory.recording.allocation import Allocation
from pyrometer.memory.snapshots.allocator.blocks import Block
from pyrometer.memory.snapshots.allocator.settings import AllocatorSettings
from pyrometer.memory.snapshots.allocator.simulator import CachingAllocator
from pyrometer.memory.snapshots.allocator.sizes import MIN_BLOCK
from pyrometer.quantity import Bytes

CONTEXT_BYTES = 500 << 20
"""What a process takes of the device beside torch's allocator: context, kernels, library handles."""

ASSUMPTIONS = (
    "CUDA was emulated: blocks of 512 bytes, segments of the caching allocator, optimizers with foreach",
    "which tensors autocast and attention keep was taken from the CPU",
    f"not counted: about {CONTEXT_BYTES >> 20} MiB for the CUDA context and kernels, and workspaces of cuBLAS and cuDNN",
)

Integers = npt.NDArray[np.int64]


def block_sizes(nbytes: Integers) -> Integers:
    """What blocks for requests take; nothing for nothing.

    >>> block_sizes(np.array([0, 1, 513])).tolist()
    [0, 512, 1024]
    """
    blocks: Integers = -(-nbytes // MIN_BLOCK) * MIN_BLOCK
    return blocks


def stays_on_host(allocation: Allocation) -> bool:
    """Whether a single number is one that optimizers keep on the CPU: their count of steps."""
    return allocation.nbytes <= 8 and allocation.category == "optimizer"


def reserved_peak(events: Integers, sizes: Integers) -> Bytes:
    """The most that the caching allocator would take from the device.

    Args:
        events: `i` where allocation `i` is made, `~i` where it is freed.
        sizes: of the allocations.

    >>> reserved_peak(np.array([0, 1, ~0, ~1]), np.array([512, 1024])) >> 20
    2
    """
    allocator = CachingAllocator(AllocatorSettings())
    where: dict[int, Block] = {}
    for event in events.tolist():
        if event >= 0 and sizes[event]:
            block = allocator.malloc(int(sizes[event]))
            assert block is not None  # without a capacity there is always more
            where[event] = block
        elif event < 0 and ~event in where:
            allocator.free(where.pop(~event))
    return allocator.peak_reserved_bytes
