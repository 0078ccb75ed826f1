"""NVIDIA's management library, through the optional package nvidia-ml-py; the only module that talks to it.

Everything may be missing: the package, the driver, the right to ask, or a figure that a board does not keep. Each of
these reads as `None`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

from pyrometer.quantity import Seconds

# Bits of nvmlClocksEventReasons that the clock is held down for: software power cap, hardware slowdown, software and
# hardware thermal slowdown, power brake. Bits for settings of the user (application clocks, sync boost) are none.
_LIMITING = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
_IDLE = 0x1


@dataclass(frozen=True, kw_only=True)
class GpuReading:
    """What a GPU said at one moment; `None` where it does not say.

    Attributes:
        clock_mhz: SM clock.
        idle: whether the clock is low because there is nothing to do.
        temperature_c: of the chip.
        limited: whether a thermal or power limit holds the clock down right now.
        limited_s: time that it has spent so since the driver was loaded.
        other_processes: processes on the GPU, without this one and its children.
    """

    clock_mhz: float | None = None
    idle: bool = False
    temperature_c: float | None = None
    limited: bool | None = None
    limited_s: Seconds | None = None
    other_processes: int | None = None


@contextmanager
def nvml_session() -> Iterator[Any]:
    """The module `pynvml`, initialised; `None` without the package or the driver."""
    try:
        import pynvml
    except ImportError:
        yield None
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        yield None
        return
    try:
        yield pynvml
    finally:
        pynvml.nvmlShutdown()


def driver_version() -> str | None:
    """Version of NVIDIA's driver."""
    with nvml_session() as nvml:
        return None if nvml is None else _ask(nvml, nvml.nvmlSystemGetDriverVersion)


def read_gpu(uuid: str) -> GpuReading | None:
    """Ask the GPU with this UUID (`GPU-…`) how it is; `None` when it cannot be asked at all."""
    with nvml_session() as nvml:
        handle = None if nvml is None else _ask(nvml, nvml.nvmlDeviceGetHandleByUUID, uuid)
        if handle is None:
            return None
        reasons = _ask(nvml, nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
        processes = _ask(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle)
        return GpuReading(
            clock_mhz=_ask(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            idle=bool(reasons and reasons & _IDLE),
            temperature_c=_ask(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
            limited=None if reasons is None else bool(reasons & _LIMITING),
            limited_s=_limited_s(nvml, handle),
            other_processes=None
            if processes is None
            else count_others({p.pid for p in processes}, _own_pids()),
        )


@dataclass(frozen=True, kw_only=True)
class GpuLoad:
    """How busy a GPU is at one moment; `None` where it does not say."""

    busy_share: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None
    temperature_c: float | None = None


def read_gpu_load(nvml: Any, uuid: str) -> GpuLoad:
    """Ask within one `nvml_session`; never for processes, which takes the driver milliseconds."""
    handle = _ask(nvml, nvml.nvmlDeviceGetHandleByUUID, uuid)
    if handle is None:
        return GpuLoad()
    rates = _ask(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
    memory = _ask(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    power_mw = _ask(nvml, nvml.nvmlDeviceGetPowerUsage, handle)
    return GpuLoad(
        busy_share=None if rates is None else rates.gpu / 100,
        memory_used_bytes=None if memory is None else memory.used,
        memory_total_bytes=None if memory is None else memory.total,
        power_w=None if power_mw is None else power_mw / 1e3,
        temperature_c=_ask(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
    )


def count_others(on_gpu: set[int], own: set[int]) -> int | None:
    """Processes on the GPU that are not ours, given that we are on it.

    The driver counts in the host's process numbers. Inside a container it shows other numbers than ours, or nothing.

    >>> count_others({10, 20}, {10}), count_others({7001, 7002}, {10}), count_others(set(), {10})
    (1, 1, None)
    """
    if not on_gpu:
        return None
    return len(on_gpu - own) if on_gpu & own else len(on_gpu) - 1


def _own_pids() -> set[int]:
    return {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}


def _limited_s(nvml: Any, handle: Any) -> Seconds | None:
    policies = (nvml.NVML_PERF_POLICY_POWER, nvml.NVML_PERF_POLICY_THERMAL)
    states = [_ask(nvml, nvml.nvmlDeviceGetViolationStatus, handle, policy) for policy in policies]
    known = [state.violationTime * 1e-9 for state in states if state is not None]
    return sum(known) if known else None


def _ask(nvml: Any, query: Callable[..., Any], *arguments: Any) -> Any:
    """The answer, or `None` where this board, driver or user may not have it."""
    try:
        return query(*arguments)
    except nvml.NVMLError:
        return None
