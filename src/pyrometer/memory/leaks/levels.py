"""What the process, or the device's allocator, holds from step to step: coarse, but it sees what no tensor shows."""

from __future__ import annotations

from pyrometer.bench.memory import MemoryMeter
from pyrometer.quantity import Bytes

MOST_READINGS = 1200


class Levels:
    """Readings after steps, at most twelve hundred, evenly spaced over however many steps there are.

    A reading takes some ten to hundred microseconds, so that in long runs not every step is read.

    Args:
        meter: what to read.
        stride: steps from one reading to the next, to begin with.

    Attributes:
        steps: after which was read.
        bytes: what was read.
        source: what it is.
    """

    def __init__(self, meter: MemoryMeter, stride: int = 1) -> None:
        self.steps: list[int] = []
        self.bytes: list[Bytes] = []
        self.source = meter.source
        self._meter = meter
        self._stride = stride

    def read(self, step: int) -> None:
        """Read, if it is this step's turn."""
        if step % self._stride:
            return
        if len(self.steps) >= MOST_READINGS:
            self.steps, self.bytes = self.steps[::2], self.bytes[::2]
            self._stride *= 2
            if step % self._stride:
                return
        self.steps.append(step)
        self.bytes.append(self._meter.current())
