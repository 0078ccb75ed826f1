"""The shortest time that a call can take: for peaks, where whatever delays a call is no property of the machine."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from pyrometer.quantity import Seconds

Timer: TypeAlias = Callable[[Callable[[], object]], Seconds]
"""Gives the best time of a call, the device's work included."""

# Longer than the time slice of a scheduler, so that on a shared machine some batches run undisturbed.
DURATION_S = 0.1
MIN_BATCHES = 2
MAX_CALLS = 10_000
# Hosts take 3 to 8 µs to issue a call. GPUs clock at about 2 GHz; one that is slower is held a little longer.
_LAUNCH_S = 10e-6
_CLOCK_HZ = 2e9


def best_time(
    call: Callable[[], object], device: torch.device | None = None, *, duration_s: Seconds = DURATION_S
) -> Seconds:
    """Best time of a call out of batches that together take at least so long.

    The first call is not counted. Short calls are batched until a batch is long against the clock's resolution; on
    CUDA a batch lies between two events in the current stream, so that the time is the device's.

    >>> best_time(lambda: time.sleep(0.001)) > 0.0009
    True
    """
    batch_s = _cuda_batch_s if device is not None and device.type == "cuda" else _host_batch_s
    batch_s(call, 1)
    # 200 µs are long against the resolution of both clocks: tens of ns on the host, half a µs between events.
    first_s = batch_s(call, 1)
    num_calls = min(MAX_CALLS, math.ceil(200e-6 / max(first_s, 1e-9)))
    batches = [first_s] if num_calls == 1 else []
    deadline_s = time.monotonic() + duration_s
    while len(batches) < MIN_BATCHES or time.monotonic() < deadline_s:
        batches.append(batch_s(call, num_calls))
    return min(batches) / num_calls


def timer_for(device: torch.device, duration_s: Seconds = DURATION_S) -> Timer:
    """`best_time` on this device."""
    return lambda call: best_time(call, device, duration_s=duration_s)


def _host_batch_s(call: Callable[[], object], num_calls: int) -> Seconds:
    start = time.perf_counter_ns()
    for _ in range(num_calls):
        call()
    return (time.perf_counter_ns() - start) * 1e-9


def _cuda_batch_s(call: Callable[[], object], num_calls: int) -> Seconds:
    event: Any = torch.cuda.Event  # untyped in torch
    start, end = event(enable_timing=True), event(enable_timing=True)
    if num_calls > 1:
        _hold_device(num_calls * _LAUNCH_S)
    start.record()
    for _ in range(num_calls):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e-3


def _hold_device(duration_s: Seconds) -> None:
    """Keep the device busy while the host issues short calls, so that it then does them without waiting for the host.

    `torch.cuda._sleep` is private; in a torch without it short calls are timed at the pace at which the host issues
    them.
    """
    sleep: Callable[[int], None] | None = getattr(torch.cuda, "_sleep", None)
    if sleep is not None:
        sleep(int(duration_s * _CLOCK_HZ))
