"""Memory of the process while steps run, read outside of the timed stretches."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import psutil
import torch

from pyrometer.bench.measurement import MemoryUse
from pyrometer.quantity import Bytes
from pyrometer.series import theil_sen, thinned

MAX_POINTS = 500
MIN_POINTS_FOR_SLOPE = 8


class MemoryMeter(Protocol):
    """Reads current and peak memory."""

    device: str
    source: str

    def reset_peak(self) -> None:
        """Begin a new peak."""

    def current(self) -> Bytes:
        """Memory now."""

    def peak(self) -> Bytes:
        """Highest memory since `reset_peak`."""


class ResidentMemory:
    """Resident set size of this process.

    Linux can reset the kernel's high-water mark (`/proc/self/clear_refs`); elsewhere the peak is the highest of
    the readings.
    """

    device = "cpu"
    source = "resident set size of the process"

    def __init__(self, proc: Path = Path("/proc/self")) -> None:
        self._proc = proc
        self._process = psutil.Process()
        self._highest = 0
        self._resettable = True

    def reset_peak(self) -> None:
        """Begin a new peak."""
        self._highest = self.current()
        try:
            (self._proc / "clear_refs").write_text("5")
        except OSError:
            self._resettable = False

    def current(self) -> Bytes:
        """Resident bytes now."""
        now = int(self._process.memory_info().rss)
        self._highest = max(self._highest, now)
        return now

    def peak(self) -> Bytes:
        """Highest resident bytes since `reset_peak`."""
        self.current()
        if not self._resettable:
            return self._highest
        status = (self._proc / "status").read_text()
        line = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
        return max(self._highest, int(line.split()[1]) * 1024) if line else self._highest


class AllocatorMemory:
    """Bytes that torch's caching allocator has handed out on a CUDA device.

    Reading a peak needs a reset of the allocator's peak counters, which cannot be put back.
    """

    source = "torch's caching allocator"

    def __init__(self, device: torch.device) -> None:
        self.device = str(device)
        self._device = device

    def reset_peak(self) -> None:
        """Begin a new peak."""
        torch.cuda.reset_peak_memory_stats(self._device)

    def current(self) -> Bytes:
        """Allocated bytes now."""
        return int(torch.cuda.memory_allocated(self._device))

    def peak(self) -> Bytes:
        """Highest allocated bytes since `reset_peak`."""
        return int(torch.cuda.max_memory_allocated(self._device))


def meter_for(device: torch.device) -> MemoryMeter:
    """The meter that is right for a device."""
    return AllocatorMemory(device) if device.type == "cuda" else ResidentMemory()


class MemoryLog:
    """Memory over the steps of one measurement."""

    def __init__(self, meter: MemoryMeter) -> None:
        self._meter = meter
        self._steps: list[int] = []
        self._bytes: list[Bytes] = []
        meter.reset_peak()
        self._start = meter.current()

    def read(self, step: int) -> None:
        """Note the memory after `step` steps."""
        self._steps.append(step)
        self._bytes.append(self._meter.current())

    def summary(self, steady_from: int) -> MemoryUse:
        """What the steps used; the slope is of the steps from `steady_from` on."""
        return memory_use(
            self._meter.device,
            self._steps,
            self._bytes,
            self._meter.peak(),
            source=self._meter.source,
            start_bytes=self._start,
            steady_from=steady_from,
        )


def memory_use(
    device: str,
    steps: list[int],
    series_bytes: list[Bytes],
    peak_bytes: Bytes,
    *,
    source: str | None = None,
    start_bytes: Bytes | None = None,
    steady_from: int = 0,
) -> MemoryUse:
    """Bring readings of memory after certain steps to a record; the slope is of those from `steady_from` on."""
    kept = [i for i, step in enumerate(steps) if step >= steady_from]
    shown = thinned(len(steps), MAX_POINTS)
    return MemoryUse(
        device=device,
        source=source or (ResidentMemory.source if device == "cpu" else AllocatorMemory.source),
        peak_bytes=peak_bytes,
        start_bytes=series_bytes[0] if start_bytes is None else start_bytes,
        growth_bytes_per_step=robust_slope([steps[i] for i in kept], [series_bytes[i] for i in kept]),
        steps=[steps[i] for i in shown],
        series_bytes=[series_bytes[i] for i in shown],
    )


def robust_slope(x: Any, y: Any) -> float | None:
    """Theil-Sen slope (median of all pairwise slopes), or `None` for fewer than eight points.

    >>> robust_slope(range(10), [3.0 * i + (100 if i == 4 else 0) for i in range(10)])
    3.0
    """
    if len(x) < MIN_POINTS_FOR_SLOPE:
        return None
    kept = thinned(len(x), 200)
    slope = theil_sen(np.asarray(x)[kept], np.asarray(y)[kept]).at
    return None if math.isnan(slope) else slope
