"""Reading the memory of this process, its workers and its devices.

Linux tells the proportional and private parts in `/proc/PID/smaps_rollup` (since 4.14); elsewhere psutil gives what it can.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from pyrometer.hardware.cgroup import read_line
from pyrometer.memory.process.heap import heap_state
from pyrometer.memory.process.record import DeviceMemory, Footprint, ProcessMemory
from pyrometer.quantity import Bytes

PROC = Path("/proc")
SHM = Path("/dev/shm")  # noqa: S108 - looked at, not written to


def read_process(*, proc: Path = PROC, shm: Path = SHM) -> ProcessMemory:
    """Read everything now. Nothing is imported, started, reset or freed by it.

    Args:
        proc: stands in for `/proc`.
        shm: the file system of shared memory.
    """
    process = psutil.Process()
    shm_use = shutil.disk_usage(shm) if shm.is_dir() else None
    return ProcessMemory(
        own=footprint(process, proc),
        workers=list(_workers(process, proc)),
        peak_bytes=_peak(process.pid, proc),
        heap=heap_state(),
        python_blocks=sys.getallocatedblocks(),
        pinned_bytes=_pinned(),
        devices=_devices(),
        shm_used_bytes=shm_use.used if shm_use else None,
        shm_total_bytes=shm_use.total if shm_use else None,
    )


def reset_peak(*, proc: Path = PROC) -> bool:
    """Begin a new peak of this process's resident size; whether the system can do so (Linux can)."""
    try:
        (proc / "self" / "clear_refs").write_text("5")
    except OSError:
        return False
    return True


def footprint(process: psutil.Process, proc: Path = PROC) -> Footprint:
    """The pages of one process.

    Raises:
        psutil.NoSuchProcess: it has ended.
    """
    # Another user's file cannot be read, and an ended process has none.
    rollup = read_line(proc / str(process.pid) / "smaps_rollup")
    if not rollup:
        return _without_rollup(process)
    size = _sizes(rollup)
    return Footprint(
        pid=process.pid,
        rss_bytes=size["Rss"],
        pss_bytes=size.get("Pss"),
        private_dirty_bytes=size.get("Private_Dirty"),
        shared_bytes=size.get("Shared_Clean", 0) + size.get("Shared_Dirty", 0),
        swap_bytes=size.get("Swap"),
    )


def _sizes(text: str) -> dict[str, Bytes]:
    """The lines `Name:   123 kB` of a file of `/proc`."""
    rows = (line.split() for line in text.splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3 and row[2] == "kB"}


def _without_rollup(process: psutil.Process) -> Footprint:
    info = process.memory_info()
    private = None
    with contextlib.suppress(psutil.AccessDenied, NotImplementedError, AttributeError):
        private = int(process.memory_full_info().uss)
    return Footprint(pid=process.pid, rss_bytes=int(info.rss), private_dirty_bytes=private)


def _workers(process: psutil.Process, proc: Path) -> Iterator[Footprint]:
    for child in process.children(recursive=True):
        # One that has just ended, or a zombie, holds nothing any more.
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            yield footprint(child, proc)


def _peak(pid: int, proc: Path) -> Bytes | None:
    return _sizes(read_line(proc / str(pid) / "status") or "").get("VmHWM")


def _pinned() -> Bytes | None:
    cuda = _initialised_cuda()
    statistics = getattr(cuda, "host_memory_stats", None)
    return None if statistics is None else int(statistics().get("allocated_bytes.current", 0))


def _devices() -> list[DeviceMemory]:
    cuda = _initialised_cuda()
    if cuda is None:
        return []
    # Asking the driver about a device that torch has not used would make a context on it, of hundreds of megabytes.
    return [_device(cuda, index) for index in range(cuda.device_count()) if cuda.memory_reserved(index)]


def _device(cuda: Any, index: int) -> DeviceMemory:
    free, total = cuda.mem_get_info(index)
    return DeviceMemory(
        device=f"cuda:{index}",
        allocated_bytes=int(cuda.memory_allocated(index)),
        reserved_bytes=int(cuda.memory_reserved(index)),
        used_bytes=int(total - free),
        total_bytes=int(total),
    )


def _initialised_cuda() -> Any:
    """`torch.cuda` where the program has used it; asking would otherwise import torch or make a context."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None
