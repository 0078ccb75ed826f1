"""What torch says of itself: compilations, graph breaks, the allocator of a device; nothing before the user has imported it."""

from __future__ import annotations

import sys
from typing import Any

from pyrometer.compiler.private.trace_log import counters, frames_compiled
from pyrometer.hardware.nvml import nvml_session, read_gpu_load
from pyrometer.monitor.signals.signal import Reading

_TOTALS = {
    "device_out_of_memory": "num_ooms",
    "device_allocation_retries": "num_alloc_retries",
    "device_allocations": "allocation.all.allocated",
}
_GAUGES = {
    "device_memory_allocated_bytes": "allocated_bytes.all.current",
    "device_memory_peak_bytes": "allocated_bytes.all.peak",
    "device_memory_reserved_bytes": "reserved_bytes.all.current",
    "device_memory_unusable_bytes": "inactive_split_bytes.all.current",
}


class CompilerSignal:
    """Compilations since the program began, and those that came again for code that was compiled before."""

    every_ticks = 1
    from_zero = True

    def read(self) -> Reading:
        """The values now; nothing while nothing was compiled."""
        if "torch._dynamo.utils" not in sys.modules:
            return Reading({}, {})
        frames, compiled = frames_compiled()
        breaks = sum(value for key, value in counters().items() if key.startswith("graph_break."))
        totals = {"compilations": compiled, "recompilations": compiled - frames, "graph_breaks": breaks}
        return Reading(
            {"compiled_frames": float(frames)}, {key: float(value) for key, value in totals.items()}
        )


def _torch_on_a_device() -> Any:
    """Torch once the program uses a CUDA device; asking sooner would create a context."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_initialized() else None


class AllocatorSignal:
    """Torch's allocator of one CUDA device."""

    every_ticks = 1
    from_zero = True

    def __init__(self, device: str) -> None:
        self._device = device

    def read(self) -> Reading:
        """The values now; nothing before the device is in use."""
        torch = _torch_on_a_device()
        if torch is None:
            return Reading({}, {})
        seen = torch.cuda.memory_stats(self._device)
        return Reading(_picked(seen, _GAUGES), _picked(seen, _TOTALS))


class GpuSignal:
    """The GPU by NVIDIA's management library, every five ticks: it has one lock for all who ask."""

    every_ticks = 5
    from_zero = False

    def __init__(self, device: str) -> None:
        self._device = device

    def read(self) -> Reading:
        """The values now; nothing before the device is in use, or without the library."""
        torch = _torch_on_a_device()
        if torch is None:
            return Reading({}, {})
        uuid = f"GPU-{torch.cuda.get_device_properties(self._device).uuid}"
        with nvml_session() as nvml:
            if nvml is None:
                return Reading({}, {})
            load = read_gpu_load(nvml, uuid)
        told = {
            "device_busy_share": load.busy_share,
            "device_memory_used_bytes": load.memory_used_bytes,
            "device_memory_total_bytes": load.memory_total_bytes,
            "device_power_watts": load.power_w,
            "device_temperature_celsius": load.temperature_c,
        }
        return Reading({key: float(value) for key, value in told.items() if value is not None}, {})


def _picked(seen: dict[str, Any], names: dict[str, str]) -> dict[str, float]:
    return {ours: float(seen[theirs]) for ours, theirs in names.items() if theirs in seen}
