"""Peaks of data movement: within the memory and the caches of a device, and between host and device."""

from __future__ import annotations

import torch

from pyrometer.hardware.peaks import Peak
from pyrometer.hardware.rig import Rig, rate_peak, repeat
from pyrometer.quantity import Bytes, Seconds, format_bytes

_MEMORY_BYTES = {"cpu": 64 * 2**20, "cuda": 2**30}
_TRANSFER_BYTES = 256 * 2**20
_BEYOND_CACHE = 4
# Torch shares out element-wise work among threads from 32,768 elements (at::internal::GRAIN_SIZE).
_ONE_THREAD_BYTES = 4 * 32_767


def memory_copy(rig: Rig, budget_s: Seconds) -> Peak:
    """Bytes read and written per second by a copy much larger than the caches (as STREAM counts)."""
    wanted = max(_MEMORY_BYTES[rig.device.type], _BEYOND_CACHE * max(rig.cache_bytes.values(), default=0))
    return _copy_within(rig, min(wanted, rig.memory_bytes // 2), budget_s)


def cache_copy(level: str, rig: Rig, budget_s: Seconds) -> Peak:
    """The same for a copy of which source and target together fill at most half a cache.

    On a CPU the second level belongs to one core, so one thread copies.
    """
    if level not in rig.cache_bytes:
        raise RuntimeError(f"the size of {level} is not known")
    num_bytes = rig.cache_bytes[level] // 4
    if rig.device.type == "cpu" and level == "l2":
        num_bytes = min(num_bytes, _ONE_THREAD_BYTES)
    return _copy_within(rig, num_bytes, budget_s)


def transfer(direction: str, kind: str, rig: Rig, budget_s: Seconds) -> Peak:
    """Bytes transferred per second between host and device; pinned host memory, or pageable."""
    num_bytes = min(_TRANSFER_BYTES, rig.memory_bytes)
    host = torch.zeros(num_bytes // 4, dtype=torch.float32, device="cpu", pin_memory=kind == "pinned")
    there = torch.zeros_like(host, device=rig.device)
    source, target = (host, there) if direction == "h2d" else (there, host)
    rates = repeat(lambda: num_bytes / rig.timer(lambda: target.copy_(source, non_blocking=True)), budget_s)
    return rate_peak(rates, f"{kind} copy of {format_bytes(num_bytes)}")


def _copy_within(rig: Rig, num_bytes: Bytes, budget_s: Seconds) -> Peak:
    source = torch.ones(num_bytes // 4, dtype=torch.float32, device=rig.device)
    target = torch.zeros_like(source)
    rates = repeat(lambda: 2 * num_bytes / rig.timer(lambda: target.copy_(source)), budget_s)
    return rate_peak(rates, f"copy of {format_bytes(num_bytes)}")
