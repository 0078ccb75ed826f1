"""Detectors as a listener of the monitor: latencies as they come, and once a second errors, silence, memory and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from pyrometer.monitor.detecting.absence import Absence
from pyrometer.monitor.detecting.alarm import Alarm, Change, State
from pyrometer.monitor.detecting.error_rate import ErrorRate
from pyrometer.monitor.detecting.leak import Leak
from pyrometer.monitor.detecting.numerics import NonFinite
from pyrometer.monitor.detecting.output_shift import OutputShift
from pyrometer.monitor.detecting.watch import Guard, Noticed, Watch, latency_guards
from pyrometer.monitor.tick import Calls, Event, Tick
from pyrometer.quantity import Seconds

Told: TypeAlias = Callable[["Notice"], None]
MOST_CALLS = 64
"""Functions that are judged; a program that names a function per request would fill the memory."""

LEAK_PER_HOUR = 64 * 2**20
MEMORY_SERIES = ("process_memory_bytes", "device_memory_allocated_bytes")


class Notice:
    """An alarm that began or ended, with where and by what."""

    def __init__(self, signal: str, noticed: Noticed) -> None:
        self.signal, self.detector, self.change = signal, noticed.detector, noticed.change

    @property
    def name(self) -> str:
        """The name of the alarm."""
        return f"{self.signal}/{self.detector}"

    def event(self) -> Event:
        """The notice as a line of the log."""
        change: Change = self.change
        return Event(
            at_s=change.at_s,
            event="alarm" if change.firing else "alarm_ended",
            call=self.signal.partition(".")[0],
            fields={
                "alarm": self.name,
                "evidence": change.reading.evidence,
                "score": round(change.reading.score, 3),
                "value": change.reading.value,
            },
        )


class Detection:
    """Judges every watched function, and what grows.

    Args:
        limit_s: the promised latency, if there is one.
        normal_errors: share of failures that is tolerated.
        leaks: gauges whose growth is watched; what is tolerated per hour, in their unit.
        told: is called with each notice, on the monitor's thread.
        outputs: whether values of sampled outputs are compared with those of the beginning; for outputs whose values are
            independent of each other, as the values of one image are not.
    """

    def __init__(
        self,
        limit_s: Seconds | None = None,
        normal_errors: float = 0.001,
        leaks: dict[str, float] | None = None,
        told: Iterable[Told] = (),
        *,
        outputs: bool = False,
    ) -> None:
        self._limit_s, self._normal_errors, self._outputs = limit_s, normal_errors, outputs
        self._leaks = dict.fromkeys(MEMORY_SERIES, float(LEAK_PER_HOUR)) if leaks is None else leaks
        self._told = list(told)
        self._watches: dict[str, Watch] = {}
        self._rates: dict[str, tuple[ErrorRate, Alarm]] = {}
        self._pending: list[Event] = []
        self.num_calls_left_out = 0

    def samples(self, call: str, at_s: Seconds, latencies_s: Sequence[float], /) -> None:
        """Judge latencies of one function in their order."""
        if self._knows(call):
            self.watch(f"{call}.latency", lambda: latency_guards(self._limit_s))
            self.look(f"{call}.latency", at_s, latencies_s)

    def tick(self, tick: Tick, /) -> Sequence[Event]:
        """Judge what is counted per second; returns the notices since the last tick as events."""
        for call, calls in tick.calls.items():
            if self._knows(call):
                self._count(call, tick.at_s, calls)
        for series, most in self._leaks.items():
            if series in tick.gauges:
                self.watch(f"{series}.growth", partial(_leak_guards, most))
                self.look(f"{series}.growth", tick.at_s, [tick.gauges[series]])
        events, self._pending = self._pending, []
        return events

    def alarms(self) -> Sequence[str]:
        """Names of what is alarming now."""
        firing = [
            f"{watch.signal}/{guard.name}"
            for watch in self._watches.values()
            for guard in watch.guards
            if guard.alarm.state is State.FIRING
        ]
        return [
            *firing,
            *(
                f"{call}.errors/error-rate"
                for call, (_, alarm) in self._rates.items()
                if alarm.state is State.FIRING
            ),
        ]

    @property
    def failed(self) -> dict[str, str]:
        """Detectors that raised and were taken out, each with what it raised."""
        return {
            f"{watch.signal}/{name}": said
            for watch in self._watches.values()
            for name, said in watch.failed.items()
        }

    def _knows(self, call: str) -> bool:
        if call in self._rates:
            return True
        if len(self._rates) >= MOST_CALLS:
            self.num_calls_left_out += 1
            return False
        self._rates[call] = (ErrorRate(self._normal_errors), Alarm(recovery=10))
        return True

    def _count(self, call: str, at_s: Seconds, calls: Calls) -> None:
        ended, failed = calls.num_ended, calls.num_failed
        if ended + failed:
            detector, alarm = self._rates[call]
            reading = detector.count(at_s, ended + failed, failed)
            change = alarm.take(reading)
            if change is not None:
                self._tell(f"{call}.errors", Noticed("error-rate", change, ended + failed))
        self.watch(f"{call}.requests", lambda: [Guard("absence", Absence(), Alarm(recovery=1))])
        self.look(f"{call}.requests", at_s, np.zeros(ended + failed))
        seen = calls.numerics
        if seen.num_checked:
            good = np.zeros(seen.num_checked)
            good[: seen.num_nan + seen.num_infinite] = np.nan
            self.watch(f"{call}.numerics", lambda: [Guard("non-finite", NonFinite(), Alarm())])
            self.look(f"{call}.numerics", at_s, good)
        if self._outputs and seen.values:
            self.watch(f"{call}.outputs", _output_guards)
            self.look(f"{call}.outputs", at_s, seen.values)

    def watch(self, signal: str, guards: Callable[[], list[Guard]]) -> None:
        """Judge a signal by these, unless it is judged already.

        Before the first call of `infer`, with `infer.latency`, it sets others than the default ones.
        """
        if signal not in self._watches:
            self._watches[signal] = Watch(signal, guards())

    def look(self, signal: str, at_s: Seconds, values: Sequence[float] | np.ndarray) -> None:
        """Judge values of a signal that is watched; on the monitor's thread."""
        for noticed in self._watches[signal].observe(at_s, np.asarray(values, np.float64)):
            self._tell(signal, noticed)

    def _tell(self, signal: str, noticed: Noticed) -> None:
        notice = Notice(signal, noticed)
        self._pending.append(notice.event())
        for told in self._told:
            told(notice)


def _leak_guards(most_per_hour: float) -> list[Guard]:
    return [Guard("leak", Leak(most_per_hour), Alarm())]


def _output_guards() -> list[Guard]:
    """By two distances: one sees bins that empty, the other values that go far."""
    return [
        Guard("psi", OutputShift(distance="psi", window=200, learn=1000), Alarm(persistence=2)),
        Guard(
            "wasserstein", OutputShift(distance="wasserstein", window=200, learn=1000), Alarm(persistence=2)
        ),
    ]
