"""A signal under watch: some detectors, each with its alarm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pyrometer.monitor.detecting.alarm import Alarm, Change
from pyrometer.monitor.detecting.cusum import Cusum
from pyrometer.monitor.detecting.detector import Detector, Floats
from pyrometer.monitor.detecting.limit import Limit
from pyrometer.monitor.detecting.tail import Tail
from pyrometer.quantity import Seconds


class Guard(NamedTuple):
    """One detector and the alarm that it feeds."""

    name: str
    detector: Detector
    alarm: Alarm


class Noticed(NamedTuple):
    """A change of one alarm, and after how many of the values it came."""

    detector: str
    change: Change
    after: int


class Watch:
    """Feeds one signal to several detectors.

    A detector that fails is taken out and named in `failed`: it must not take the others with it.
    """

    def __init__(self, signal: str, guards: list[Guard]) -> None:
        self.signal = signal
        self.guards = list(guards)
        self.failed: dict[str, str] = {}

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Noticed]:
        """Judge the values that came since the last call; yields alarms that begin or end."""
        for guard in list(self.guards):
            try:
                for reading in guard.detector.observe(at_s, values):
                    change = guard.alarm.take(reading)
                    if change is not None:
                        yield Noticed(guard.name, change, reading.after)
            except Exception as error:  # noqa: BLE001 - a detector of anyone may fail on odd values
                self.guards.remove(guard)
                self.failed[guard.name] = f"{type(error).__name__}: {error}"


def latency_guards(limit_s: Seconds | None = None) -> list[Guard]:
    """What watches a latency by default: its level, its tail, and the promised limit where there is one."""
    guards = [
        Guard("cusum", Cusum(), Alarm(persistence=1, recovery=3)),
        Guard("tail", Tail(), Alarm(persistence=2, recovery=3)),
    ]
    return guards if limit_s is None else [Guard("limit", Limit(limit_s), Alarm(recovery=5)), *guards]
