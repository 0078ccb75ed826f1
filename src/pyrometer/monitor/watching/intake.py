"""Where calls of one function are put down by the threads that make them, and taken up by the monitor's own thread.

Nothing here takes a lock: a deque's `append` and `popleft`, and `next` of an `itertools.count`, are atomic. What finds no room
is counted, so that `started == taken + dropped + failed + in flight` holds exactly whenever no call is under way.
"""

from __future__ import annotations

import itertools
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from pyrometer.monitor.tick import Event

T = TypeVar("T")
MOST_ERRORS = 1024
"""Errors and events that wait to be taken; more are only counted."""


class Count:
    """A number that many threads raise by one without a lock.

    >>> count = Count()
    >>> count.up(), count.up(), count.value(), count.value()
    (0, 1, 2, 2)
    """

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._reads = 0
        self.up: Callable[[], int] = self._numbers.__next__

    def value(self) -> int:
        """How often it was raised; only one thread may ask at a time."""
        self._reads += 1
        return next(self._numbers) - self._reads + 1

    def wind(self, mask: int) -> None:
        """Raise it until the next `up()` gives a multiple of `mask + 1`, which does not count."""
        while (next(self._numbers) + 1) & mask:
            self._reads += 1
        self._reads += 1


class Failure(NamedTuple):
    """One call that raised."""

    error: str
    latency_ns: int
    shape: str
    batch: int | None


class Taken(NamedTuple):
    """What was put down since the last time."""

    latencies_ns: list[int]
    units: float
    failures: list[Failure]
    failures_dropped: int
    first_items_ns: list[int]


class Intake:
    """The queues and counts of one watched function."""

    def __init__(self, name: str, *, capacity: int, mask: int, limit_ns: int | None) -> None:
        self.name = name
        self.has_units = False
        self.capacity = capacity
        self.mask = mask
        self.limit_ns = sys.maxsize if limit_ns is None else limit_ns
        self.ring: deque[int] = deque()
        self.units: deque[float] = deque()
        self.first_items: deque[int] = deque()
        self.failures: deque[Failure] = deque()
        self.started = Count()
        self.dropped = Count()
        self._failures_dropped = Count()
        self._taken = 0
        self._failed = 0
        self._failures_told = 0
        self._before_fork = (0, 0)

    def end(self, took_ns: int) -> None:
        """A call returned; the fastest path has these lines written out."""
        if len(self.ring) < self.capacity:
            self.ring.append(took_ns)
        else:
            self.dropped.up()

    def fail(self, failure: Failure) -> None:
        """A call raised."""
        if len(self.failures) < MOST_ERRORS:
            self.failures.append(failure)
        else:
            self._failures_dropped.up()

    def take(self, most: int) -> Taken:
        """Take up what was put down, at most so many calls; only one thread may at a time."""
        latencies = _popped(self.ring, most)
        failures = _popped(self.failures, most)
        dropped = self._failures_dropped.value()
        fresh = dropped - self._failures_told
        self._failures_told = dropped
        self._taken += len(latencies)
        self._failed += len(failures) + fresh
        units = sum(_popped(self.units, most))
        return Taken(latencies, units, failures, fresh, _popped(self.first_items, most))

    def counts(self) -> tuple[int, int]:
        """Calls whose latency was dropped since the start or the fork, and calls under way."""
        dropped = self.dropped.value() - self._before_fork[1]
        ended = self._taken + len(self.ring) + dropped + self._failed + len(self.failures)
        started = self.started.value() - self._before_fork[0]
        return dropped, max(started - ended, 0)

    def forget(self) -> None:
        """Begin anew in a forked child: what waits is the parent's, and the next call is looked at."""
        for queue in (self.ring, self.units, self.first_items, self.failures):
            queue.clear()
        self._before_fork = (self.started.value(), self.dropped.value())
        self.started.wind(self.mask)
        self._failures_told = self._failures_dropped.value()
        self._taken = self._failed = 0


class EventQueue:
    """Events that wait for the next tick: bounded, and each second has room for so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._room = most
        self._waiting: deque[Event] = deque(maxlen=MOST_ERRORS)
        self._dropped = Count()
        self._told = 0

    def has_room(self) -> bool:
        """Whether another one would be kept; where not, it counts as dropped."""
        if self._room > 0:
            return True
        self._dropped.up()
        return False

    def add(self, event: Event) -> None:
        """Keep an event if there is room."""
        if self.has_room():
            self._room -= 1
            self._waiting.append(event)

    def take(self) -> tuple[list[Event], int]:
        """What waits, and how many found no room since the last time."""
        dropped = self._dropped.value()
        fresh, self._told = dropped - self._told, dropped
        events = _popped(self._waiting, MOST_ERRORS)
        self._room = self._most
        return events, fresh


def _popped(queue: deque[T], most: int) -> list[T]:
    pop = queue.popleft
    return [pop() for _ in range(min(len(queue), most))]


def shape_of(args: Any) -> tuple[str, int | None]:
    """Shapes of the tensors among positional arguments, `8x3x224x224,8`, and the first dimension of the first one."""
    shapes = [tuple(one.shape) for one in args if hasattr(one, "shape") and isinstance(one.shape, tuple)]
    text = ",".join("x".join(map(str, shape)) or "scalar" for shape in shapes[:8])
    batch = shapes[0][0] if shapes and shapes[0] else None
    return text, batch if isinstance(batch, int) else None
