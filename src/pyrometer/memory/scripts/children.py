"""The memory of a script's child processes, such as the workers of a loader, in which nothing of ours runs.

Read is what is resident and not shared with a file: what a forked child has of its parent counts from the beginning, and so does
not grow.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from pyrometer.quantity import Bytes, Seconds

MOST_SHARE = 0.01
"""Of this thread's time, for readings."""

GROWN_BYTES = 32 * 2**20
"""A child that grows by less once its first step is over has made its libraries ready, or filled a queue."""

GOES_ON = 0.25
"""Growth goes on when the second half of the readings has at least so much of what the first half had."""

LOADERS = ("pt_data_worker",)
"""What torch calls the processes of a loader."""


class ChildGrowth(NamedTuple):
    """By how much one child grew."""

    name: str
    nbytes: Bytes
    steps: int
    goes_on: bool

    @property
    def matters(self) -> bool:
        """Whether it may be a leak."""
        return self.goes_on and self.nbytes > GROWN_BYTES


class ChildLevels:
    """Readings of all children after steps.

    Args:
        proc: where the kernel tells of processes.
        clock: seconds that this thread has computed.
    """

    def __init__(self, proc: Path = Path("/proc"), clock: Callable[[], Seconds] = time.thread_time) -> None:
        self._proc = proc
        self._clock = clock
        self._next_s = 0.0
        self._names: dict[int, str] = {}
        self._readings: dict[int, list[tuple[int, Bytes]]] = {}

    def read(self, step: int) -> None:
        """Read, unless it was done so lately that it would cost too much."""
        begin = self._clock()
        if begin < self._next_s:
            return
        for pid in self._children():
            level = self._level(pid)
            if level:
                self._readings.setdefault(pid, []).append((step, level))
                if pid not in self._names:
                    self._names[pid] = self._name(pid)
        self._next_s = self._clock() + (self._clock() - begin) / MOST_SHARE

    @property
    def growths(self) -> list[ChildGrowth]:
        """By how much each child grew, the most first."""
        found = [_growth(self._names[pid], readings) for pid, readings in self._readings.items()]
        return sorted(found, key=lambda growth: -growth.nbytes)

    def _children(self) -> Iterator[int]:
        for path in (self._proc / str(os.getpid()) / "task").glob("*/children"):
            try:
                yield from map(int, path.read_text().split())
            except OSError:  # a thread that has ended meanwhile
                continue

    def _level(self, pid: int) -> Bytes:
        try:
            _, resident, shared, *_ = (self._proc / str(pid) / "statm").read_text().split()
        except (OSError, ValueError):  # it has ended meanwhile
            return 0
        return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")

    def _name(self, pid: int) -> str:
        try:
            name = (self._proc / str(pid) / "comm").read_text().strip()
        except OSError:
            name = ""
        return "a loader's worker" if name.startswith(LOADERS) else f"the child process {name}".strip()


def _growth(name: str, readings: list[tuple[int, Bytes]]) -> ChildGrowth:
    warm = readings[1:] or readings  # the first is of a process that is about to begin
    first, middle, last = warm[0], warm[len(warm) // 2], warm[-1]
    late, early = last[1] - middle[1], middle[1] - first[1]
    return ChildGrowth(name, last[1] - first[1], last[0] - first[0], late >= GOES_ON * early and late > 0)
