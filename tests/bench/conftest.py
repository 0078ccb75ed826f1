"""A session whose steps take exactly as long as they are told, on a clock that only they advance."""

from __future__ import annotations

import contextlib
import itertools
import mmap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from pyrometer.workload.variant import Variant
from pyrometer.workload.workload import Session, Workload


class InjectedClock:
    """Time passes only when a step says so."""

    name = "wall"

    def __init__(self) -> None:
        self.now_ns = 0
        self.cpu_now_ns = 0
        self.queued_now_ns = 0

    def mark(self) -> int:
        return self.now_ns

    def host_ns(self) -> int:
        return self.now_ns

    def queued_ns(self) -> int:
        return 0

    def all_queued_ns(self) -> int:
        return self.queued_now_ns

    def cpu_ns(self) -> int:
        return self.cpu_now_ns

    def between(self, start: int, end: int) -> float:
        return (end - start) * 1e-9

    def synchronize(self) -> None:
        pass

    def pass_time(self, wall_s: float, cpu_s: float | None = None, queued_s: float = 0.0) -> None:
        self.now_ns += round(wall_s * 1e9)
        self.cpu_now_ns += round((wall_s if cpu_s is None else cpu_s) * 1e9)
        self.queued_now_ns += round(queued_s * 1e9)


class TimedSession(Session):
    """Step number i takes `duration(i)` seconds, or so much wall, CPU and queueing time."""

    device = torch.device("cpu")

    def __init__(
        self, clock: InjectedClock, duration: Callable[[int], Any], output: Callable[[int], Any]
    ) -> None:
        self.clock = clock
        self.duration = duration
        self.output = output
        self.count = itertools.count()

    def prepare(self) -> None:
        return None

    def step(self, prepared: None = None) -> Any:
        number = next(self.count)
        taken = self.duration(number)
        self.clock.pass_time(*(taken if isinstance(taken, tuple) else (taken,)))
        return self.output(number)

    def phased_step(self, mark: Callable[[str], None]) -> Any:
        number = next(self.count)
        self.clock.pass_time(self.duration(number) * 0.25)
        mark("data")
        self.clock.pass_time(self.duration(number) * 0.75)
        mark("forward")

    def activate(self) -> None:
        pass

    def afresh(self, prepared: None) -> None:
        return None

    @property
    def units_per_step(self) -> float:
        return 4.0


class TimedWorkload(Workload):
    unit = "samples"
    config = Variant()

    def __init__(self, clock, duration, output=lambda _: None, name="timed") -> None:
        self.clock, self.duration, self.output, self.name = clock, duration, output, name

    @contextlib.contextmanager
    def open(self) -> Iterator[TimedSession]:
        yield TimedSession(self.clock, self.duration, self.output)

    def variant(self, **_changes: Any) -> TimedWorkload:
        return self

    def phases(self) -> tuple[str, ...]:
        return ("data", "forward")

    def snapshot_bytes(self) -> int:
        return 0


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Two threads on two busy cores wait for each other far longer than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def clock() -> InjectedClock:
    return InjectedClock()


@pytest.fixture
def timed(clock: InjectedClock) -> Callable[..., TimedWorkload]:
    return lambda duration, output=lambda _: None, name="timed": TimedWorkload(clock, duration, output, name)


@pytest.fixture
def fresh_memory() -> Callable[[int], mmap.mmap]:
    """Pages that no allocator can take from what earlier tests have freed, so that the resident set must grow."""

    def take(num_bytes: int) -> mmap.mmap:
        pages = mmap.mmap(-1, num_bytes)
        pages.write(b"x" * num_bytes)
        return pages

    return take
