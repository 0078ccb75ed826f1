"""Durations of steps that follow one another, without a synchronisation between them."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import torch

from pyrometer.quantity import Seconds


class StepTimes:
    """Marks the ends of steps: by the clock on the CPU, by events on CUDA, where the host runs ahead of the device."""

    def __init__(self, device: torch.device) -> None:
        self._on_device = device.type == "cuda"
        self._marks: list[Any] = []

    def mark(self) -> None:
        """A step ends here and the next begins."""
        if self._on_device:
            event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            event.record()
            self._marks.append(event)
        else:
            self._marks.append(time.perf_counter())

    def durations_s(self) -> list[Seconds]:
        """One duration per pair of marks that follow each other; waits for the device."""
        if not self._on_device:
            return [end - start for start, end in pairwise(self._marks)]
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e-3 for start, end in pairwise(self._marks)]
