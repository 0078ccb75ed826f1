"""What else the machine was doing while something was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import TracebackType

from pyrometer.errors import UsageError
from pyrometer.hardware.counters import CpuMeter, CpuReading, SystemCpuMeter
from pyrometer.hardware.cpu import usable_cpus
from pyrometer.hardware.gpu import current_gpu_uuid
from pyrometer.hardware.nvml import GpuReading, read_gpu
from pyrometer.hardware.record import Conditions

# The kernel counts CPU time in ticks of 10 ms; over fewer than ten of them the rounding is all there is to see.
SHORTEST_S = 0.1
# A limit that held the GPU's clock down for less of the time than this left no mark on the result.
LIMITED_SHARE = 0.01


class ConditionsProbe:
    """Looks at the machine before and after something; on a GPU also in between, when asked to.

    The GPU is torch's current one if this process has begun to use CUDA, and nvidia-ml-py is installed.

    >>> with ConditionsProbe() as probe:
    ...     total = sum(range(10))
    >>> probe.conditions.logical_cpus >= 1
    True
    """

    def __init__(
        self, cpu: CpuMeter | None = None, gpu: Callable[[], GpuReading | None] | None = None
    ) -> None:
        self.conditions: Conditions | None = None
        self._cpu = cpu or SystemCpuMeter()
        self._gpu = gpu or _read_current_gpu
        self._first: CpuReading | None = None
        self._gpu_readings: list[GpuReading] = []

    def start(self) -> None:
        """Take the first look, or begin again."""
        self._gpu_readings.clear()
        self.sample()
        self._first = self._cpu.read()

    def sample(self) -> None:
        """Take one more look at the GPU; opens the driver's library each time, so not inside anything that is timed."""
        reading = self._gpu()
        if reading is not None:
            self._gpu_readings.append(reading)

    def finish(self) -> Conditions:
        """Take the last look.

        Raises:
            UsageError: `start` was not called.
        """
        if self._first is None:
            raise UsageError("ConditionsProbe: finish() before start(); use it in a with statement")
        last = self._cpu.read()
        self.sample()
        self.conditions = conditions_between(self._first, last, self._gpu_readings, usable_cpus())
        return self.conditions

    def __enter__(self) -> ConditionsProbe:  # noqa: PYI034 - Self comes with Python 3.11
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()


def conditions_between(
    first: CpuReading, last: CpuReading, gpu: Sequence[GpuReading], usable: float
) -> Conditions:
    """What happened between two readings of the CPU's counters, and at some moments on the GPU.

    Competing load is the busy time of the CPUs open to us, less our own, over the wall time.
    """
    wall_s = last.at_s - first.at_s
    busy_s = last.busy_s - first.busy_s
    own_s = last.own_s - first.own_s
    enough = wall_s >= SHORTEST_S
    clocks = [reading.clock_mhz for reading in gpu if reading.clock_mhz and not reading.idle]
    temperatures = [reading.temperature_c for reading in gpu if reading.temperature_c is not None]
    return Conditions(
        load_average=last.load_average,
        logical_cpus=math.ceil(usable),
        competing_load=max(busy_s - own_s, 0.0) / wall_s if enough else None,
        steal_share=_steal_share(first, last) if enough else None,
        involuntary_switches_per_s=(
            (last.involuntary_switches - first.involuntary_switches) / wall_s if wall_s > 0 else None
        ),
        frequency_ratio=(last.clock_mhz / first.clock_mhz if last.clock_mhz and first.clock_mhz else None),
        throttled=_throttled(first, last, gpu),
        gpu_clock_ratio=min(clocks) / max(clocks) if len(clocks) > 1 else None,
        gpu_temperature_c=max(temperatures, default=None),
        other_gpu_processes=gpu[-1].other_processes if gpu else None,
    )


def _steal_share(first: CpuReading, last: CpuReading) -> float | None:
    if first.steal_s is None or last.steal_s is None:
        return None
    stolen_s = last.steal_s - first.steal_s
    total_s = stolen_s + (last.busy_s - first.busy_s) + (last.idle_s - first.idle_s)
    return stolen_s / total_s if total_s > 0 else None


def _throttled(first: CpuReading, last: CpuReading, gpu: Sequence[GpuReading]) -> bool | None:
    """Whether any of the signs that the machine gives says so; `None` when it gives none."""
    signs = [reading.limited for reading in gpu if reading.limited is not None]
    if first.num_throttles is not None and last.num_throttles is not None:
        signs.append(last.num_throttles > first.num_throttles)
    limited_s = [reading.limited_s for reading in gpu if reading.limited_s is not None]
    if len(limited_s) > 1:
        signs.append(limited_s[-1] - limited_s[0] > LIMITED_SHARE * (last.at_s - first.at_s))
    return any(signs) if signs else None


def _read_current_gpu() -> GpuReading | None:
    uuid = current_gpu_uuid()
    return None if uuid is None else read_gpu(uuid)
