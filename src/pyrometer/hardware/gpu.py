"""Accelerators, and what NVIDIA's management library adds when it is installed (`pip install 'pyrometer[cuda]'`)."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc

# Reasons that mean the clock was held down by heat or power, from nvml.h (nvmlClocksEventReason*): software power cap,
# hardware slowdown, software thermal slowdown, hardware thermal slowdown, hardware power brake.
HELD_DOWN = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


class Gpu(Record, frozen=True, kw_only=True):
    """One accelerator."""

    name: str
    memory_bytes: Bytes
    capability: Annotated[str, doc("compute capability, such as 9.0")]
    multiprocessors: int
    driver: Annotated[str | None, doc("null without nvidia-ml-py")]


class GpuState(Record, frozen=True, kw_only=True):
    """A reading of one GPU's clocks and limits."""

    sm_clock_mhz: int
    temperature_c: float
    held_down: Annotated[bool, doc("whether heat or power held the clock down")]
    other_processes: int


def read_gpus() -> list[Gpu]:
    """Every CUDA (or ROCm) device that torch can use; creates no CUDA context."""
    import torch

    if not torch.cuda.is_available():
        return []
    driver = _driver()
    found = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        found.append(
            Gpu(
                name=properties.name,
                memory_bytes=int(properties.total_memory),
                capability=f"{properties.major}.{properties.minor}",
                multiprocessors=int(properties.multi_processor_count),
                driver=driver,
            )
        )
    return found


def read_gpu_state() -> GpuState | None:
    """Clock, temperature and limits of the current CUDA device; `None` where nobody uses CUDA or nothing can tell."""
    torch = sys.modules.get("torch")
    nvml = _nvml()
    if nvml is None or torch is None or not torch.cuda.is_initialized():
        return None
    uuid = getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", None)
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
        reasons = nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
        return GpuState(
            sm_clock_mhz=int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            temperature_c=float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            held_down=bool(reasons & HELD_DOWN),
            other_processes=max(len(nvml.nvmlDeviceGetComputeRunningProcesses(handle)) - 1, 0),
        )
    except nvml.NVMLError:
        # A driver may refuse any of these (virtual GPUs do); then the state is unknown, which the record can say.
        return None


def _nvml() -> Any:
    if find_spec("pynvml") is None:
        return None
    nvml = import_module("pynvml")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


def _driver() -> str | None:
    nvml = _nvml()
    if nvml is None:
        return None
    version = nvml.nvmlSystemGetDriverVersion()
    return version.decode() if isinstance(version, bytes) else str(version)
