"""Runs every probe of a device within one time budget."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from pyrometer.hardware.cpu import read_cpu
from pyrometer.hardware.datasheet import lookup
from pyrometer.hardware.peaks import Peak, Peaks
from pyrometer.hardware.timing import Timer, timer_for
from pyrometer.quantity import Bytes, Seconds

NUM_TIMINGS = 4
GROWS = 1.03
PATIENCE = 2


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What a probe works with.

    Attributes:
        device: where.
        timer: gives the best time of a call.
        memory_bytes: what one probe may take.
        cache_bytes: last level of cache (CPU: second and third level).
        budget_s: for one probe.
    """

    device: torch.device
    timer: Timer
    memory_bytes: Bytes
    l2_bytes: Bytes
    l3_bytes: Bytes
    budget_s: Seconds
