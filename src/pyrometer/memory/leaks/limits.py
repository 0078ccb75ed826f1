"""How much memory is left before a program has to die."""

from __future__ import annotations

import psutil
import torch

from pyrometer.hardware.cgroup import memory_limit
from pyrometer.quantity import Bytes


def memory_left(device: torch.device, limit_bytes: Bytes | None = None) -> tuple[Bytes | None, Bytes | None]:
    """The memory limit, and what is left of it now; `None` where nobody says.

    On CUDA the device's memory, where what torch's allocator holds without a tensor in it counts as left; elsewhere the
    least of physical memory and the limit of the control group. A given limit is meant for what the process (or, on CUDA,
    its tensors) uses.

    >>> limit, left = memory_left(torch.device("cpu"), 2**60)
    >>> limit == 2**60, 0 < left < limit
    (True, True)
    """
    if device.type == "cuda":
        return _of_device(device, limit_bytes)
    if device.type != "cpu":
        return limit_bytes, None
    used = int(psutil.Process().memory_info().rss)
    if limit_bytes is not None:
        return limit_bytes, max(0, limit_bytes - used)
    machine = psutil.virtual_memory()
    limit, left = int(machine.total), int(machine.available)
    group = memory_limit()
    return (group, min(left, max(0, group - used))) if group is not None and group < limit else (limit, left)


def _of_device(device: torch.device, limit_bytes: Bytes | None) -> tuple[Bytes, Bytes]:
    allocated = int(torch.cuda.memory_allocated(device))
    if limit_bytes is not None:
        return limit_bytes, max(0, limit_bytes - allocated)
    free, total = torch.cuda.mem_get_info(device)
    return int(total), int(free) + int(torch.cuda.memory_reserved(device)) - allocated
