"""The second that is not over yet: what was taken from the queues so far, and the record that it becomes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import structs

from pyrometer.histogram import Histogram
from pyrometer.monitor.tick import Calls, Event
from pyrometer.monitor.watching.intake import Failure, Taken
from pyrometer.monitor.watching.probe import Probe

MOST_AT_ONCE = 2000
"""Calls that are taken before other threads may run: a fifth of a millisecond."""
MOST_KINDS = 32
"""Types of errors that are told apart, per function and tick."""
MOST_TOLD = 20
"""Errors that are told in full, per function and tick; all are counted."""


class OpenCalls:
    """One function within the open second."""

    def __init__(self, probe: Probe) -> None:
        self.probe = probe
        self._dropped_before = 0
        self._reset()

    def _reset(self) -> None:
        self._chunks: list[list[int]] = []
        self._first_items: list[int] = []
        self._device_s: list[float] = []
        self._units = 0.0
        self._errors: dict[str, int] = {}
        self._num_failed = 0
        self._error_events: list[Event] = []

    def drain(self) -> Sequence[float]:
        """Take what waits; the latencies among it, in seconds."""
        fresh: list[int] = []
        while True:
            taken = self.probe.intake.take(MOST_AT_ONCE)
            self._add(taken)
            fresh += taken.latencies_ns
            if len(taken.latencies_ns) < MOST_AT_ONCE:
                break
        if fresh:
            self._chunks.append(fresh)
        self.probe.outputs.settle()
        self._device_s += self.probe.device.take()
        return fresh

    def _add(self, taken: Taken) -> None:
        self._units += taken.units
        self._first_items += taken.first_items_ns
        self._num_failed += len(taken.failures) + taken.failures_dropped
        for failure in taken.failures:
            known = failure.error in self._errors or len(self._errors) < MOST_KINDS
            kind = failure.error if known else "other"
            self._errors[kind] = self._errors.get(kind, 0) + 1
            if len(self._error_events) < MOST_TOLD:
                self._error_events.append(self._event_of(failure))
        if taken.failures_dropped:
            self._errors["other"] = self._errors.get("other", 0) + taken.failures_dropped

    def _event_of(self, failure: Failure) -> Event:
        return Event(
            at_s=time.time(),
            event="error",
            call=self.probe.intake.name,
            latency_s=failure.latency_ns / 1e9,
            shape=failure.shape,
            batch=failure.batch,
            error=failure.error,
        )

    def take_events(self) -> list[Event]:
        """Errors that are told in full."""
        events, self._error_events = self._error_events, []
        return events

    def so_far(self) -> Calls:
        """What the open second holds, without what outputs held."""
        dropped, in_flight = self.probe.intake.counts()
        num_dropped = dropped - self._dropped_before
        num_ended = sum(map(len, self._chunks)) + num_dropped
        return Calls(
            num_ended=num_ended,
            num_failed=self._num_failed,
            errors=dict(self._errors),
            num_dropped=num_dropped,
            in_flight=in_flight,
            units=self._units if self.probe.intake.has_units else float(num_ended),
            latency_s=_seconds([value for chunk in self._chunks for value in chunk]),
            device_s=Histogram.of(self._device_s),
            first_item_s=_seconds(self._first_items),
        )

    def close(self) -> Calls:
        """The record of the second; the next one begins."""
        calls = structs.replace(self.so_far(), numerics=self.probe.outputs.take())
        self._dropped_before += calls.num_dropped
        self._reset()
        return calls

    def forget(self) -> None:
        """Begin anew in a forked child."""
        self.probe.intake.forget()
        self._dropped_before = 0
        self._reset()


def _seconds(values_ns: list[int]) -> Histogram:
    return Histogram.of(in_seconds(values_ns))


def in_seconds(values_ns: Sequence[float]) -> Any:
    """Nanoseconds as an array of seconds."""
    return np.array(values_ns, np.float64) / 1e9
