"""The accelerators that torch sees."""

from __future__ import annotations

import sys
from typing import Any

from pyrometer.hardware.nvml import driver_version
from pyrometer.hardware.record import Gpu


def read_gpus() -> list[Gpu]:
    """Every GPU that `torch.cuda` sees, NVIDIA's or AMD's; empty, and CUDA stays untouched, where it sees none.

    Asking for the properties initialises torch's CUDA state but creates no context on the device.
    """
    import torch

    if not torch.cuda.is_available():
        return []
    driver = driver_version()
    return [_gpu(torch.cuda.get_device_properties(i), driver) for i in range(torch.cuda.device_count())]


def current_gpu_uuid() -> str | None:
    """Torch's current GPU as the driver names it; `None` while this process has not begun to use CUDA."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    uuid = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", None)
    return None if uuid is None else f"GPU-{uuid}"


def _gpu(properties: Any, driver: str | None) -> Gpu:
    return Gpu(
        name=properties.name,
        memory_bytes=properties.total_memory,
        capability=f"{properties.major}.{properties.minor}",
        multiprocessors=properties.multi_processor_count,
        driver=driver,
    )
