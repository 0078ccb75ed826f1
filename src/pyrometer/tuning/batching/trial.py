"""Running one batch size without running out of memory for good: what it takes, and how long."""

from __future__ import annotations

import gc

import psutil
import torch

from pyrometer.bench.clock import Clock
from pyrometer.bench.measure import measure
from pyrometer.bench.measurement import Measurement
from pyrometer.errors import UserProgramError
from pyrometer.hardware.cgroup import memory_limit
from pyrometer.memory.recording.allocator import record_allocator
from pyrometer.quantity import Bytes, Seconds
from pyrometer.workload.failure import user_code
from pyrometer.workload.workload import Workload

STEPS = 2
"""The optimizer makes its state in the first."""

KEPT_FREE = 0.1
"""Share of the host's memory that trials leave to others."""

_FULL = ("can't allocate memory", "out of memory", "not enough memory", "Cannot allocate memory")


class OutOfMemory(Exception):  # noqa: N818 - an outcome, not an error
    """A trial needed more than there is."""


def host_available() -> Bytes:
    """What this process may still take of the host's memory, within what its control group grants."""
    free = int(psutil.virtual_memory().available)
    granted = memory_limit()
    if granted is not None:
        free = min(free, granted - int(psutil.Process().memory_info().rss))
    return max(free, 0)


def usable(device: torch.device) -> Bytes:
    """The memory that a workload's peak may reach here by default.

    On CUDA what is free on the device and what torch holds already; on the CPU what is available, less a tenth.
    """
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free) + int(torch.cuda.memory_reserved(device))
    return int(host_available() * (1 - KEPT_FREE))


def run_for_memory(work: Workload, device: torch.device) -> Bytes:
    """The peak of a few steps: of torch's allocator on the CPU; on CUDA what it reserved of the device.

    On CUDA the allocator's peak counters are reset, and its cache is emptied before.

    Raises:
        OutOfMemory: it needed more than there is; what it had taken is given back.
        InputError: the workload cannot be prepared.
        UserProgramError: a step raised something else.
    """
    full = False
    try:
        if device.type == "cuda":
            return _reserved_on(device, work)
        return record_allocator(work, steps=STEPS).peak_bytes
    except UserProgramError as error:
        full = is_full(error)
        if not full:
            raise
    except torch.cuda.OutOfMemoryError:  # while the session was opened
        full = True
    # Only here are the frames of the failed step, and the tensors in them, gone.
    give_back(device)
    raise OutOfMemory


def _reserved_on(device: torch.device, work: Workload) -> Bytes:
    give_back(device)
    torch.cuda.reset_peak_memory_stats(device)
    with work.open() as session, user_code("the step"):
        session.activate()
        for _ in range(STEPS):
            session.phased_step(lambda _phase: None)
        torch.cuda.synchronize(device)
    # What the session holds to restore the user's state is not the program's own.
    return max(int(torch.cuda.max_memory_reserved(device)) - work.snapshot_bytes(), 0)


def run_for_latency(work: Workload, *, budget_s: Seconds, clock: Clock | None) -> Measurement:
    """How long a step takes.

    Raises:
        OutOfMemory: it needed more than there is.
        InputError: the workload cannot be prepared.
        UserProgramError: a step raised something else.
    """
    try:
        return measure(work, budget_s=budget_s, phases=False, clock=clock)
    except UserProgramError as error:
        if not is_full(error):
            raise
    raise OutOfMemory


def give_back(device: torch.device) -> None:
    """Free what failed steps left behind, down to the device."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def is_full(error: BaseException) -> bool:
    """Whether a failure, or what led to it, is that memory ran out."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, (MemoryError, torch.cuda.OutOfMemoryError)):
            return True
        if isinstance(seen, RuntimeError) and any(sign in str(seen) for sign in _FULL):
            return True
        seen = seen.__cause__
    return False
