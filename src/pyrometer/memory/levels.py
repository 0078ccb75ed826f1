"""Memory of the process and the device while steps run, as the outside sees it."""

from __future__ import annotations

import gc
from typing import NamedTuple

import torch

from pyrometer.bench.memory import ResidentMemory
from pyrometer.memory.profile import ProcessLevels
from pyrometer.quantity import Bytes
from pyrometer.workload.failure import user_code
from pyrometer.workload.workload import Session, Workload


class PlainRun(NamedTuple):
    """What a few steps without any recording showed."""

    device: str
    levels: ProcessLevels
    units_per_step: float


def run_plainly(work: Workload, *, steps: int) -> PlainRun:
    """Run a workload's steps with nothing in the way, and read what counters tell.

    On CUDA the allocator's peak counters are reset, which cannot be put back.

    Raises:
        InputError: the workload cannot be prepared.
        UserProgramError: a step raised.
    """
    with work.open() as session:
        session.activate()
        gc.collect()
        meter = ResidentMemory()
        meter.reset_peak()
        start = meter.current()
        on_cuda = session.device.type == "cuda"
        if on_cuda:
            torch.cuda.reset_peak_memory_stats(session.device)
        _run(session, steps)
        levels = ProcessLevels(rss_start_bytes=start, rss_peak_bytes=meter.peak())
        if on_cuda:
            levels = with_device(levels, session.device)
        return PlainRun(str(session.device), levels, session.units_per_step)


def _run(session: Session, steps: int) -> None:
    with user_code("the step"):
        for _ in range(steps):
            session.phased_step(lambda _phase: None)


def with_device(levels: ProcessLevels, device: torch.device) -> ProcessLevels:
    """The levels with those of a CUDA device; waits for what it is doing."""
    torch.cuda.synchronize(device)
    free, total = torch.cuda.mem_get_info(device)
    return ProcessLevels(
        rss_start_bytes=levels.rss_start_bytes,
        rss_peak_bytes=levels.rss_peak_bytes,
        allocated_peak_bytes=torch.cuda.max_memory_allocated(device),
        reserved_peak_bytes=torch.cuda.max_memory_reserved(device),
        pinned_bytes=_pinned(),
        device_used_bytes=total - free,
        device_total_bytes=total,
    )


def _pinned() -> Bytes | None:
    stats = getattr(torch.cuda, "host_memory_stats", None)
    found = stats() if stats is not None else {}
    return found.get("allocated_bytes.current")
