"""Seconds, minutes and the hour, by merging: of the last minute every tick is kept, of the last hour every minute."""

from __future__ import annotations

from collections import deque

from msgspec import structs

from pyrometer.monitor.tick import CALL_EVENTS, Tick, merge_ticks
from pyrometer.quantity import Seconds

MINUTE_S, HOUR_S = 60.0, 3600.0


class Windows:
    """The last hour in bounded memory: at most `most` ticks and sixty minutes."""

    def __init__(self, most: int = 600) -> None:
        self._ticks: deque[Tick] = deque(maxlen=most)
        self._minutes: deque[Tick] = deque(maxlen=60)
        self._open: list[Tick] = []

    def add(self, tick: Tick) -> None:
        """One more tick."""
        slim = without_calls(tick)
        self._ticks.append(slim)
        self._open.append(slim)
        if sum(one.span_s for one in self._open) >= MINUTE_S or len(self._open) >= 600:
            self._minutes.append(merge_ticks(self._open))
            self._open = []

    def last(self, span_s: Seconds) -> Tick:
        """The last `span_s` seconds as one tick: whole ticks up to a minute, beyond it whole minutes as well."""
        chosen: list[Tick] = []
        covered = 0.0
        found = [*self._minutes, *self._open] if span_s > MINUTE_S else list(self._ticks)
        for tick in reversed(found):
            if chosen and covered + tick.span_s > span_s * 1.001:
                break
            chosen.append(tick)
            covered += tick.span_s
        return merge_ticks(reversed(chosen))


def without_calls(tick: Tick) -> Tick:
    """The figures, and of the events the changes: alarms, and steps of degradation."""
    if not tick.events:
        return tick
    return structs.replace(tick, events=[event for event in tick.events if event.event not in CALL_EVENTS])
