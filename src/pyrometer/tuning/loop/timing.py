"""How long steps and their phases take, noted as they run and read when the device is done with them anyway."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np

from pyrometer.bench.clock import Clock, HostClock
from pyrometer.bench.measurement import PhaseTime, QuantileEstimate
from pyrometer.bench.phasing import REST, split
from pyrometer.bench.quantiles import estimate_quantile
from pyrometer.quantity import Seconds

LAST = 1000
"""Steps that are remembered."""

EVENTS_EVERY = 10
"""Device events cost microseconds each: with them, one step of so many is timed by phases."""

MIN_STEPS = 8
ORDER = ("data", "h2d", "forward", "backward", "optimizer", REST)


class StepTimes:
    """Times of the last steps. On the host all marks are clock readings; on a device those of what computes are events."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._every = 1 if isinstance(clock, HostClock) else EVENTS_EVERY
        self.total_s: Seconds = 0.0
        self.num_steps = 0
        self.recent: deque[Seconds] = deque(maxlen=LAST)
        self._rows: deque[dict[str, Seconds]] = deque(maxlen=LAST)
        self._totals: deque[Seconds] = deque(maxlen=LAST)
        self._unread: list[tuple[list[tuple[str, Any, Any]], dict[str, Seconds], Seconds]] = []
        self._spans: list[tuple[str, Any, Any]] | None = None
        self._host: dict[str, Seconds] = {}
        self._last: Any = None
        self._began_ns = 0
        self._last_s: Seconds = 0.0

    def begin(self) -> None:
        """A step begins."""
        self._began_ns = time.perf_counter_ns()
        self._spans = [] if self.num_steps % self._every == 0 else None
        self._host = {"data": 0.0, "h2d": 0.0}

    def loaded(self, data_ns: int, h2d_ns: int) -> None:
        """A batch was taken: what the loader took of the host's time, and what came on top to have it on the device."""
        self._host["data"] += data_ns * 1e-9
        self._host["h2d"] += h2d_ns * 1e-9
        if self._spans is not None:
            self._last = self._clock.mark()

    @property
    def last(self) -> tuple[Seconds, Seconds]:
        """How long the last step took the host, and how long it waited for the loader."""
        return self._last_s, self._host["data"]

    def mark(self, phase: str) -> None:
        """A phase ends that began where the one before ended."""
        if self._spans is not None:
            now = self._clock.mark()
            self._spans.append((phase, self._last, now))
            self._last = now

    def end(self) -> None:
        """The step has ended, as the host sees it."""
        step_s = (time.perf_counter_ns() - self._began_ns) * 1e-9
        self._last_s = step_s
        self.total_s += step_s
        self.num_steps += 1
        self.recent.append(step_s)
        if self._spans is not None:
            self._unread.append((self._spans, self._host, step_s))

    def read(self) -> None:
        """Turn marks into times; waits for the device where there are any."""
        if self._unread:
            self._clock.synchronize()
        for spans, host, step_s in self._unread:
            row = dict(host)
            for phase, start, end in spans:
                row[phase] = row.get(phase, 0.0) + self._clock.between(start, end)
            known = sum(row.values())
            self._rows.append(row | {REST: max(0.0, step_s - known)})
            self._totals.append(max(step_s, known))
        self._unread.clear()

    def forget(self) -> None:
        """Begin anew, after something has changed; totals stay."""
        self.read()
        self.recent.clear()
        self._rows.clear()
        self._totals.clear()

    def phases(self) -> list[PhaseTime]:
        """The phases of the steps that are remembered."""
        self.read()
        return split(list(self._rows), list(self._totals), ORDER) if self._rows else []

    def median(self) -> QuantileEstimate | None:
        """The median step with its interval; `None` for fewer than eight."""
        if len(self.recent) < MIN_STEPS:
            return None
        return estimate_quantile(np.array(self.recent), 0.5, 0.95)
