"""The floor of a series: the lowest reading of each stretch, whatever rises and falls between.

Garbage that waits for its collector, batches of varying shape and buffers of an epoch all come back to the floor; what
leaks lifts it. A stretch must be longer than the period of what comes and goes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyrometer.bench.autocorrelation import Floats

WARM_UP_SHARE = 0.2
MOST_BLOCKS = 24
PERIODS_PER_BLOCK = 1.2
LEAST_ALIKE = 0.3


@dataclass(frozen=True)
class BlockFloor:
    """Lowest readings of the blocks.

    Attributes:
        steps: the steps at which those readings were taken.
        readings: bytes.
        block_readings: readings per block.
        period_readings: readings after which the series repeats itself; `None` where it does not.
    """

    steps: Floats
    readings: Floats
    block_readings: int
    period_readings: int | None


def block_floor(steps: Floats, readings: Floats) -> BlockFloor:
    """Cut a series, without its first fifth, into blocks of equally many readings.

    At most 24 blocks, each at least 1.2 periods long. Readings that do not fill a block are left out at the beginning.
    """
    start = int(WARM_UP_SHARE * len(readings))
    steps, readings = steps[start:], readings[start:]
    period = find_period(steps, readings)
    size = max(-(-len(readings) // MOST_BLOCKS), int(np.ceil(PERIODS_PER_BLOCK * (period or 0))), 1)
    num_blocks = len(readings) // size
    used = slice(len(readings) - num_blocks * size, None)
    blocks = readings[used].reshape(num_blocks, size)
    lowest = blocks.argmin(axis=1)
    rows = np.arange(num_blocks)
    return BlockFloor(steps[used].reshape(num_blocks, size)[rows, lowest], blocks[rows, lowest], size, period)


def find_period(steps: Floats, readings: Floats) -> int | None:
    """Readings after which a series repeats itself; `None` where it does not.

    The highest autocorrelation of what is left beside a straight line, behind its first zero crossing, if it exceeds 0.3
    and the period fits four times: a single step or bend beside a line looks like half a period of something longer.

    >>> at = np.arange(200.0)
    >>> find_period(at, 3 * at + at % 25), find_period(at, 3 * at)
    (25, None)
    """
    n = len(readings)
    if n < 8:
        return None
    residuals = readings - np.polyval(np.polyfit(steps - steps.mean(), readings, 1), steps - steps.mean())
    power = float(residuals @ residuals)
    if power <= 1e-12 * float(readings @ readings):
        return None
    spectrum = np.fft.rfft(residuals, 2 * n)
    # Divided by the number of pairs at each lag, so that a long period is not called weaker than a short one.
    likeness = (
        np.fft.irfft(spectrum * np.conj(spectrum))[: n // 4 + 2]
        / power
        * n
        / np.arange(n, n - n // 4 - 2, -1)
    )
    crossing = np.flatnonzero(likeness < 0)
    if not len(crossing):
        return None
    behind = likeness[crossing[0] :]
    highest = float(behind.max())
    if highest <= LEAST_ALIKE:
        return None
    # Multiples of the period are as high as it is, but for noise.
    near = np.flatnonzero(behind >= 0.9 * highest)
    first = int(near[0])
    while first + 1 < len(behind) and behind[first + 1] > behind[first]:
        first += 1
    return int(crossing[0]) + first if first + 1 < len(behind) else None
