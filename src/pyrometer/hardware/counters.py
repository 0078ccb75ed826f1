"""What the operating system counts: CPU time of everybody and of us, throttling, clock rate."""

from __future__ import annotations

import resource
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil

from pyrometer.hardware.cgroup import ROOT, read_line
from pyrometer.hardware.cpu import allowed_cpus
from pyrometer.quantity import Seconds


@dataclass(frozen=True, kw_only=True)
class CpuReading:
    """Counters at one moment; `None` where the platform does not count.

    Attributes:
        at_s: monotonic time.
        busy_s: time that the CPUs open to us were busy since the machine started, with whatever.
        idle_s: time that they had nothing to do.
        steal_s: time that they wanted to run and the hypervisor ran something else.
        own_s: CPU time of this process and its descendants.
        involuntary_switches: times that this process was pushed off a CPU.
        clock_mhz: clock of the fastest CPU.
        num_throttles: times that a CPU was slowed down for its temperature.
        load_average: runnable processes, mean over a minute.
    """

    at_s: Seconds
    busy_s: Seconds
    idle_s: Seconds
    steal_s: Seconds | None = None
    own_s: Seconds
    involuntary_switches: int
    clock_mhz: float | None = None
    num_throttles: int | None = None
    load_average: float | None = None


class CpuMeter(Protocol):
    """Where CPU readings come from; tests bring their own."""

    def read(self) -> CpuReading:
        """Read all counters now."""


class SystemCpuMeter:
    """Reads the machine through psutil and `/sys`; `root` stands in for `/`."""

    def __init__(self, root: Path = ROOT) -> None:
        self._throttle_files = list(
            (root / "sys/devices/system/cpu").glob("cpu[0-9]*/thermal_throttle/*_count")
        )

    def read(self) -> CpuReading:
        """Read all counters now; takes a few milliseconds, most of them to find our descendants."""
        own_s = _tree_cpu_s()
        times = _times_of_allowed_cpus()
        steal = [each.steal for each in times if hasattr(each, "steal")]
        return CpuReading(
            at_s=time.monotonic(),
            # Guest time is part of user time, and waiting for a disk is idle.
            busy_s=sum(_total(each, ("user", "nice", "system", "irq", "softirq")) for each in times),
            idle_s=sum(_total(each, ("idle", "iowait")) for each in times),
            steal_s=sum(steal) if steal else None,
            own_s=own_s,
            involuntary_switches=resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw,
            clock_mhz=_clock_mhz(),
            num_throttles=self._num_throttles(),
            load_average=psutil.getloadavg()[0],
        )

    def _num_throttles(self) -> int | None:
        counts = [int(text) for file in self._throttle_files if (text := read_line(file)) and text.isdigit()]
        return sum(counts) if counts else None


def _times_of_allowed_cpus() -> list[Any]:
    times = psutil.cpu_times(percpu=True)
    allowed = allowed_cpus()
    # With a CPU taken offline the list is shorter than the numbers are high; then every CPU counts.
    return times if max(allowed) >= len(times) else [times[number] for number in allowed]


def _total(times: Any, names: tuple[str, ...]) -> Seconds:
    return float(sum(getattr(times, name, 0.0) for name in names))


def _tree_cpu_s() -> Seconds:
    """CPU time of this process, its living descendants, and those that it has waited for."""
    total = 0.0
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        # One that ended since it was listed has left its time to its parent.
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])  # user, system, and both of children that were waited for
    return total


def _clock_mhz() -> float | None:
    """Clock of the fastest CPU: the one that works, where the others may have slowed down for want of work."""
    try:
        clocks = psutil.cpu_freq(percpu=True)
    except (OSError, NotImplementedError):  # psutil's way to say that this machine has no such figures
        return None
    # A virtual machine shows one fixed figure, with no range that the clock could move in.
    return max((clock.current for clock in clocks if clock.max > 0), default=None)
