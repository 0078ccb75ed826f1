"""How the caching allocator rounds sizes (its rules since torch 1.10; constants of `c10/core/AllocatorConfig.h`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyrometer.memory.snapshots.allocator.settings import AllocatorSettings

MIN_BLOCK = 512
SMALL_LIMIT = 1 << 20
"""Requests up to here come from the small pool."""
SMALL_SEGMENT = 2 << 20
LARGE_LIMIT = 10 << 20
"""Requests below share segments of 20 MiB; larger ones get their own."""
LARGE_ROUND = 2 << 20


def round_size(size: int, settings: AllocatorSettings) -> int:
    """What a block for a request takes.

    >>> round_size(1, AllocatorSettings()), round_size(1500, AllocatorSettings())
    (512, 1536)
    >>> round_size(1200 << 20, AllocatorSettings(roundup_power2_divisions=(4,) * 16)) >> 20
    1280
    """
    if size < MIN_BLOCK:
        return MIN_BLOCK
    divisions = settings.divisions_for(size)
    if divisions > 1 and size > MIN_BLOCK * divisions:
        return _next_division(size, divisions)
    return -(-size // MIN_BLOCK) * MIN_BLOCK


def _next_division(size: int, divisions: int) -> int:
    """The next of so many equal steps between two powers of two."""
    if size <= 4 or size & (size - 1) == 0:
        return size
    floor = 1 << (size.bit_length() - 1)
    step = floor // divisions
    if step == 0:
        return floor * 2
    return -(-size // step) * step


def round_sizes(sizes: npt.NDArray[np.int64], settings: AllocatorSettings) -> npt.NDArray[np.int64]:
    """`round_size` of many."""
    plain: npt.NDArray[np.int64] = np.maximum(-(-sizes // MIN_BLOCK), 1) * MIN_BLOCK
    if not any(settings.roundup_power2_divisions):
        return plain
    distinct, where = np.unique(sizes, return_inverse=True)
    rounded = np.array([round_size(int(size), settings) for size in distinct], np.int64)
    return rounded[where]


def segment_size(size: int, settings: AllocatorSettings) -> int:
    """What is asked of the device for a rounded size that no cached block fits.

    >>> [segment_size(n << 20, AllocatorSettings()) >> 20 for n in (1, 2, 10, 11)]
    [2, 20, 10, 12]
    """
    if size <= SMALL_LIMIT:
        return SMALL_SEGMENT
    if size < LARGE_LIMIT:
        return settings.large_segment_bytes
    return -(-size // LARGE_ROUND) * LARGE_ROUND
