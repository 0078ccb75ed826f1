"""Clocks: how a point in time is marked on a device, and how far two marks are apart.

On the CPU a mark is a reading of the host's monotonic clock. On an asynchronous device it is an event in the
stream, because the host returns before the device has done the work. The clock is chosen per device and injected
everywhere, so that tests can bring their own.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds

_SCHEDSTAT = Path("/proc/thread-self/schedstat")
_TASKS = Path("/proc/self/task")
READINGS = 200


class Clock(Protocol):
    """What the samplers need from a clock."""

    name: str

    def mark(self) -> Any:
        """Mark this moment on the device's time line; cheap, never waits."""

    def between(self, start: Any, end: Any) -> Seconds:
        """Time between two marks; only valid after `synchronize`."""

    def host_ns(self) -> int:
        """The host's monotonic clock in nanoseconds."""

    def cpu_ns(self) -> int:
        """CPU time of this process, all threads, in nanoseconds."""

    def queued_ns(self) -> int:
        """How long this thread has been ready to run without a CPU, in nanoseconds; 0 where nobody counts it."""

    def all_queued_ns(self) -> int:
        """The same, summed over the threads of this process; reads a file per thread."""

    def synchronize(self) -> None:
        """Wait until the device has done everything that was asked of it."""


class HostClock:
    """Wall time of the host, for work that is done when the call returns.

    >>> clock = HostClock()
    >>> clock.between(clock.mark(), clock.mark()) >= 0
    True
    """

    name = "wall"

    def __init__(self) -> None:
        # The builtins themselves, so that a reading costs no Python frame.
        self.mark = time.perf_counter_ns
        self.host_ns = time.perf_counter_ns
        self.cpu_ns = time.process_time_ns
        self.queued_ns = queued_ns
        self.all_queued_ns = all_queued_ns

    def between(self, start: int, end: int) -> Seconds:
        """Time between two readings."""
        return (end - start) * 1e-9

    def synchronize(self) -> None:
        """Nothing to wait for."""


class PatientClock(HostClock):
    """Wall time whose host time stands still while others have the processor, so that a budget by it is one of work done.

    It never falls behind by more than the factor, for a machine that is busy without end.
    """

    MOST = 8

    def __init__(self) -> None:
        super().__init__()
        start_ns, queued_start_ns = time.perf_counter_ns(), queued_ns()

        def patient_ns() -> int:
            wall_ns = time.perf_counter_ns() - start_ns
            return max(wall_ns - (queued_ns() - queued_start_ns), wall_ns // self.MOST)

        self.host_ns = patient_ns


class EventClock:
    """Device time by events in the current stream; needs `Event(enable_timing=True)` of the device's module."""

    name = "device events"

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._module: Any = getattr(torch, device.type)
        self._event: Any = self._module.Event if hasattr(self._module, "Event") else self._module.event.Event
        self.host_ns = time.perf_counter_ns
        self.cpu_ns = time.process_time_ns
        self.queued_ns = queued_ns
        self.all_queued_ns = all_queued_ns

    def mark(self) -> Any:
        """Record an event in the current stream of the device."""
        event = self._event(enable_timing=True)
        event.record()
        return event

    def between(self, start: Any, end: Any) -> Seconds:
        """Time between two events that have happened."""
        return float(start.elapsed_time(end)) * 1e-3

    def synchronize(self) -> None:
        """Wait for the device."""
        if self._device.type == "mps":
            self._module.synchronize()
        else:
            self._module.synchronize(self._device)


def queued_ns() -> int:
    """How long this thread has been ready to run without a CPU; 0 where the kernel does not count it."""
    return _queued_ns(_SCHEDSTAT)


def all_queued_ns() -> int:
    """How long the threads of this process have been ready to run without a CPU, summed; 0 where the kernel does not count it."""
    return sum(_queued_ns(path) for path in _TASKS.glob("*/schedstat"))


def _queued_ns(schedstat: Path) -> int:
    try:
        # The second of three figures, in nanoseconds: the kernel's Documentation/scheduler/sched-stats.rst.
        figures = schedstat.read_text(encoding="ascii").split()
    except OSError:  # not Linux, or the thread has ended
        return 0
    return int(figures[1]) if len(figures) == 3 else 0


def usable_device(text: str) -> torch.device:
    """The device that a text such as `cpu` or `cuda:1` names.

    Raises:
        InputError: no such kind of device, or this machine has none.

    >>> usable_device("cpu")
    device(type='cpu')
    """
    try:
        device = torch.device(text)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"device {text}: cannot be used here ({reason}); legal are cpu, cuda, xpu and mps"
        ) from error
    clock_for(device)
    return device


def clock_for(device: torch.device) -> Clock:
    """The clock that is right for a device.

    Raises:
        InputError: a device without events that we know how to wait for.
    """
    if device.type == "cpu":
        return HostClock()
    if device.type in {"cuda", "xpu", "mps"}:
        return EventClock(device)
    raise InputError(f"device {device}: no clock for it; legal are cpu, cuda, xpu and mps")


def timer_overhead(clock: Clock) -> Seconds:
    """What timing one sample costs: the median distance of two marks with nothing in between."""
    marks = [(clock.mark(), clock.mark()) for _ in range(READINGS)]
    clock.synchronize()
    return float(np.median([clock.between(start, end) for start, end in marks]))
