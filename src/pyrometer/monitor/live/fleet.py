"""The last minute of every process that tells of itself, and the last ten minutes of every function."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

from pyrometer.monitor.degrading.ladder import RUNG
from pyrometer.monitor.instruments import split_series
from pyrometer.monitor.live.record import CallNow, Change, LiveDocument, Moment, ProcessNow
from pyrometer.monitor.tick import Calls, Tick, merge_calls
from pyrometer.monitor.windows import MINUTE_S, Windows
from pyrometer.quantity import Seconds

FORGOTTEN_S = 600.0
"""A process that has said nothing for so long is no longer shown."""

MOMENT_S = 5.0
LATE_S = 2.0
"""How long after its end a moment is told: ticks of other processes come late."""

MOST_CHANGES = 50
MOST_MOMENTS = 20_000

Process: TypeAlias = tuple[str, int]
Moments: TypeAlias = dict[tuple[int, str, str], Calls]


class Fleet:
    """Takes ticks of all processes."""

    def __init__(self) -> None:
        self._windows: dict[Process, Windows] = {}
        self._last: dict[Process, Tick] = {}
        self._moments: Moments = {}
        self._changes: deque[Change] = deque(maxlen=MOST_CHANGES)

    def add(self, ticks: Iterable[Tick]) -> None:
        """More ticks, in the order in which each process told them."""
        for tick in ticks:
            process = (tick.source.host, tick.source.pid)
            self._windows.setdefault(process, Windows()).add(tick)
            self._last[process] = tick
            self._changes.extend(Change(source=tick.source, event=event) for event in tick.events)
            place = int((tick.at_s - tick.span_s / 2) // MOMENT_S)
            for name, calls in tick.calls.items():
                key = (place, tick.source.model, name)
                known = self._moments.get(key)
                self._moments[key] = calls if known is None else merge_calls([known, calls])

    def now(self, now_s: Seconds, *, after_s: Seconds = -math.inf) -> LiveDocument:
        """What is to be shown, with the moments that began after a time."""
        self._forget(now_s)
        processes = [self._process(process, now_s) for process in self._last]
        return LiveDocument(
            at_s=now_s,
            processes=sorted(
                processes, key=lambda one: (not one.alarms, one.source.model, one.source.host, one.source.pid)
            ),
            changes=heapq.nlargest(MOST_CHANGES, self._changes, key=lambda change: change.event.at_s),
            moments=[
                _moment(key, calls)
                for key, calls in sorted(self._moments.items())
                if after_s < key[0] * MOMENT_S <= now_s - MOMENT_S - LATE_S
            ],
        )

    def _forget(self, now_s: Seconds) -> None:
        for process in [key for key, tick in self._last.items() if now_s - tick.at_s > FORGOTTEN_S]:
            del self._windows[process], self._last[process]
        fresh = [key for key in self._moments if key[0] * MOMENT_S >= now_s - FORGOTTEN_S]
        kept = heapq.nlargest(MOST_MOMENTS, fresh)
        if len(kept) < len(self._moments):
            self._moments = {key: self._moments[key] for key in kept}

    def _process(self, process: Process, now_s: Seconds) -> ProcessNow:
        minute, last = self._windows[process].last(MINUTE_S), self._last[process]
        return ProcessNow(
            source=last.source,
            silent_s=max(now_s - last.at_s, 0.0),
            alarms=list(last.alarms),
            rungs=_rungs(last.gauges),
            memory_bytes=last.gauges.get("process_memory_bytes"),
            calls=[_call(name, calls, minute.span_s) for name, calls in sorted(minute.calls.items())],
        )


def _call(name: str, calls: Calls, span_s: Seconds) -> CallNow:
    p50_s, p95_s, p99_s = _quantiles(calls)
    return CallNow(
        call=name,
        rate_hz=(calls.num_ended + calls.num_failed) / max(span_s, 1e-9),
        num_ended=calls.num_ended,
        num_failed=calls.num_failed,
        errors=calls.errors,
        p50_s=p50_s,
        p95_s=p95_s,
        p99_s=p99_s,
        in_flight=calls.in_flight,
        num_dropped=calls.num_dropped,
    )


def _moment(key: tuple[int, str, str], calls: Calls) -> Moment:
    place, model, name = key
    p50_s, p95_s, p99_s = _quantiles(calls)
    return Moment(
        model=model,
        call=name,
        at_s=place * MOMENT_S,
        rate_hz=(calls.num_ended + calls.num_failed) / MOMENT_S,
        failed_hz=calls.num_failed / MOMENT_S,
        p50_s=p50_s,
        p95_s=p95_s,
        p99_s=p99_s,
    )


def _quantiles(calls: Calls) -> list[Seconds | None]:
    found = calls.latency_s
    return [found.quantile(share) if found.count else None for share in (0.5, 0.95, 0.99)]


def _rungs(gauges: dict[str, float]) -> dict[str, str]:
    """Where ladders stand, from one gauge per rung of each policy."""
    found = [split_series(series) for series, value in gauges.items() if value]
    return {labels["policy"]: labels["rung"] for name, labels in found if name == RUNG}
