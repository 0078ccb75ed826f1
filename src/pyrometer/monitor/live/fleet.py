"""The last minute of every process that tells of itself, a row per watched function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pyrometer.monitor.tick import Source, Tick
from pyrometer.monitor.windows import MINUTE_S, Windows
from pyrometer.quantity import Seconds

FORGOTTEN_S = 600.0
"""A process that has said nothing for so long is no longer shown."""


class Row(NamedTuple):
    """One watched function of one process, over the last minute that it told of."""

    source: Source
    call: str
    rate_hz: float
    num_failed: int
    num_ended: int
    p50_s: float
    p95_s: float
    p99_s: float
    in_flight: int
    num_dropped: int
    alarms: tuple[str, ...]
    silent_s: Seconds


class Fleet:
    """Takes ticks of all processes."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, int], Windows] = {}
        self._last: dict[tuple[str, int], Tick] = {}

    def add(self, ticks: Iterable[Tick]) -> None:
        """More ticks, in the order in which each process told them."""
        for tick in ticks:
            process = (tick.source.host, tick.source.pid)
            self._windows.setdefault(process, Windows()).add(tick)
            self._last[process] = tick

    def rows(self, now_s: Seconds) -> list[Row]:
        """What is to be shown: the functions of all processes, those that alarm first."""
        for process in [key for key, tick in self._last.items() if now_s - tick.at_s > FORGOTTEN_S]:
            del self._windows[process], self._last[process]
        rows = [row for process in self._last for row in self._rows_of(process, now_s)]
        return sorted(rows, key=lambda row: (not row.alarms, row.source.model, row.source.pid, row.call))

    def _rows_of(self, process: tuple[str, int], now_s: Seconds) -> list[Row]:
        minute, last = self._windows[process].last(MINUTE_S), self._last[process]
        return [
            Row(
                source=last.source,
                call=name,
                rate_hz=(calls.num_ended + calls.num_failed) / max(minute.span_s, 1e-9),
                num_failed=calls.num_failed,
                num_ended=calls.num_ended,
                p50_s=calls.latency_s.quantile(0.5),
                p95_s=calls.latency_s.quantile(0.95),
                p99_s=calls.latency_s.quantile(0.99),
                in_flight=calls.in_flight,
                num_dropped=calls.num_dropped,
                alarms=tuple(last.alarms),
                silent_s=max(now_s - last.at_s, 0.0),
            )
            for name, calls in minute.calls.items()
        ]
