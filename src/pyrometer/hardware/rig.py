"""What the probes of the peaks share: where they run, how they time, when they stop."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch

from pyrometer.hardware.peaks import Peak
from pyrometer.hardware.timing import Timer
from pyrometer.quantity import Bytes, Seconds

NUM_TIMINGS = 4
GROWS = 1.03
PATIENCE = 2
CALLS_PER_TIMING = 4


@dataclass(frozen=True, kw_only=True)
class Rig:
    """Where and with what a probe measures.

    Attributes:
        device: the CPU or a CUDA device.
        timer: gives the best time of a call.
        memory_bytes: what one probe may take.
        cache_bytes: size of the data caches by name, such as `l2`.
    """

    device: torch.device
    timer: Timer
    memory_bytes: Bytes
    cache_bytes: dict[str, Bytes]


Probe: TypeAlias = Callable[[Rig, Seconds], Peak]
"""Measures one thing within so many seconds; raises RuntimeError where the device or this torch cannot do it."""


def rate_peak(rates: Sequence[float], work: str) -> Peak:
    """The highest of some rates."""
    return Peak(best=max(rates), median=statistics.median(rates), num_timings=len(rates), work=work)


def cost_peak(times_s: Sequence[Seconds], work: str) -> Peak:
    """The lowest of some durations."""
    return Peak(best=min(times_s), median=statistics.median(times_s), num_timings=len(times_s), work=work)


def repeat(
    measure: Callable[[], float], budget_s: Seconds, now: Callable[[], Seconds] = time.monotonic
) -> list[float]:
    """Measure once, and up to four times while another one still fits into the budget.

    >>> repeat(lambda: 5.0, 1.0, now=iter([0, 0, 0.4, 0.4, 0.8]).__next__)
    [5.0, 5.0]
    """
    deadline = now() + budget_s
    values: list[float] = []
    begun = now()
    while len(values) < NUM_TIMINGS:
        values.append(measure())
        ended = now()
        if 2 * ended - begun > deadline:
            break
        begun = now()
    return values


def climb(
    time_at: Callable[[int], Seconds],
    work_of: Callable[[int], float],
    sizes: Sequence[int],
    budget_s: Seconds,
    now: Callable[[], Seconds] = time.monotonic,
) -> tuple[int, float]:
    """The size with the highest rate, and that rate; sizes are tried in rising order until the rate stops to grow.

    One size that brings nothing is forgiven, since the machine may have been disturbed. A size that is predicted to
    end after the budget is not tried; the first always is.

    Args:
        time_at: best time of the work at a size; a RuntimeError at a later size (out of memory) ends the climb.
        work_of: amount of work at a size.
        sizes: candidates, rising.
        budget_s: for all of them.
        now: a clock, in seconds.

    >>> rates = {1: 10.0, 2: 50.0, 4: 50.1, 8: 49.0, 16: 99.0}
    >>> climb(lambda size: size / rates[size], float, [1, 2, 4, 8, 16], 60.0)
    (4, 50.1)
    """
    deadline = now() + budget_s
    best_size, best, stalls, predicted_s = sizes[0], 0.0, 0, 0.0
    for size, following in zip(sizes, [*sizes[1:], sizes[-1]], strict=True):
        begun = now()
        if best and begun + predicted_s > deadline:
            break
        try:
            call_s = time_at(size)
        except RuntimeError:
            if not best:
                raise
            break
        rate = work_of(size) / call_s
        # A timer spends a fixed time on short calls, and a few calls on long ones.
        predicted_s = max(now() - begun, CALLS_PER_TIMING * call_s * work_of(following) / work_of(size))
        stalls = 0 if rate > best * GROWS else stalls + 1
        if rate > best:
            best_size, best = size, rate
        if stalls == PATIENCE:
            break
    return best_size, best
