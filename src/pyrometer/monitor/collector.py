"""The monitor's own thread: every tenth of a second it takes what calls put down, every second it makes a tick of it.

Where nothing is called for two seconds it wakes for ticks alone, until a call that is looked at wakes it.
A fault on the way is counted and the thread goes on; it is started by the first call, and anew by the first call in a forked child.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from pyrometer.histogram import Histogram
from pyrometer.monitor.instruments import Counter, Gauge, HistogramInstrument
from pyrometer.monitor.opening import OpenCalls, in_seconds
from pyrometer.monitor.signals.signal import Growth, Signal
from pyrometer.monitor.tick import Calls, Event, Listener, Source, Tick
from pyrometer.monitor.watching.intake import Count, EventQueue
from pyrometer.quantity import Seconds

T = TypeVar("T")
DRAIN_S = 0.1
DOZE_S = 1.0
DOZE_AFTER = 20
"""Drains in a row that found nothing."""
MOST_TOLD = 5
"""Faults that the log tells; later ones are only counted."""
_LOGGER = logging.getLogger("pyrometer")


class Clocks:
    """What tells the time; tests put in another."""

    wall = staticmethod(time.time)
    steady = staticmethod(time.monotonic)


class Collector:
    """Everything that is added up, and the thread that does it."""

    def __init__(
        self,
        source: Callable[[], Source],
        events: EventQueue,
        deliver: Callable[[Tick], None],
        *,
        tick_s: Seconds,
        clocks: Clocks | None = None,
    ) -> None:
        self.open: dict[str, OpenCalls] = {}
        self.instruments: dict[str, Counter | Gauge | HistogramInstrument] = {}
        self.signals: list[Signal] = []
        self.listeners: list[Listener] = []
        self.fault_count = Count()
        self._source = source
        self._events = events
        self._deliver = deliver
        self._tick_s = tick_s
        self._clocks = clocks or Clocks()
        self._ended = False
        self._fresh(from_zero=True)

    def _fresh(self, *, from_zero: bool) -> None:
        """What a process begins with, and a forked child again: no lock of the parent's is used, which may be held."""
        self._lock = threading.RLock()
        self._listening = threading.RLock()
        self._begin = threading.Lock()
        self._wake: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self.is_running = self._is_awake = False
        self._num_empty = 0
        self._sequence = 0
        self._growth = {True: Growth(from_zero=from_zero), False: Growth()}
        self._gauges: dict[str, float] = {}
        self._faults_told = self.fault_count.value()
        self._extra: list[Event] = []
        self._last_s = self._clocks.steady()

    def ensure_running(self) -> None:
        """Start the thread unless it runs, and wake it where it dozes; cheap when it is awake."""
        if self._is_awake or self._ended:
            return
        with self._begin:
            self._num_empty, self._is_awake = 0, True
            if self.is_running:
                self.wake()
            if not self.is_running:
                self._last_s = self._clocks.steady()
                thread = threading.Thread(target=self._run, name="pyrometer-monitor", daemon=True)
                thread.start()
                self._thread = thread
                self.is_running = True

    def wake(self) -> None:
        """Drain now; may be called from anywhere, a signal handler too."""
        self._wake.put(True)

    def fault(self, error: BaseException) -> None:
        """Count something that went wrong with us."""
        if self.fault_count.up() < MOST_TOLD:
            with contextlib.suppress(Exception):  # a handler of the user's log may raise, too
                _LOGGER.warning("pyrometer monitor: %s: %s", type(error).__name__, error)

    def tick(self) -> Tick:
        """End the open second now."""
        with self._lock:
            fresh = self._drain()
            tick = self._close()
            self._guarded(lambda: self._deliver(tick))
        with self._listening:  # a slow listener holds up no snapshot
            self._tell_samples(fresh, tick.at_s)
            for listener in list(self.listeners):
                events = self._guarded(lambda: listener.tick(tick))  # noqa: B023 - called at once
                self._extra += events or ()
        return tick

    def drain(self) -> None:
        """Take what waits into the open second."""
        with self._lock:
            fresh = self._drain()
        if fresh:
            with self._listening:
                self._tell_samples(fresh, self._clocks.wall())

    def so_far(self) -> dict[str, Calls]:
        """The open second of each function, up to now."""
        self.drain()
        with self._lock:
            return {name: one.so_far() for name, one in self.open.items()}

    def end(self, timeout_s: Seconds) -> None:
        """Stop the thread; calls go on and are no longer counted."""
        self._ended = True
        self.wake()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)
        self.is_running = False

    def forget(self) -> None:
        """Begin anew in a forked child; the next call starts the thread."""
        self._fresh(from_zero=False)
        for one in self.open.values():
            one.forget()
        for instrument in self.instruments.values():
            instrument.forget()
        self._events.take()

    def _run(self) -> None:
        next_s = self._clocks.steady() + self._tick_s
        while not self._ended:
            longest_s = DRAIN_S if self._is_awake else DOZE_S
            wait_s = max(min(longest_s, next_s - self._clocks.steady()), 0.0)
            with contextlib.suppress(queue.Empty):
                self._wake.get(timeout=wait_s)
            try:
                if self._clocks.steady() >= next_s:
                    next_s = max(next_s + self._tick_s, self._clocks.steady())
                    self.tick()
                else:
                    self.drain()
            except Exception as error:  # noqa: BLE001 - the thread outlives every fault
                self.fault(error)

    def _drain(self) -> list[tuple[str, Sequence[float]]]:
        taken = [(name, one.drain()) for name, one in list(self.open.items())]
        for instrument in list(self.instruments.values()):
            instrument.gather()
        self._num_empty = 0 if any(fresh for _, fresh in taken) else self._num_empty + 1
        self._is_awake = self.is_running and self._num_empty < DOZE_AFTER
        return [(name, fresh) for name, fresh in taken if fresh] if self.listeners else []

    def _tell_samples(self, taken: list[tuple[str, Sequence[float]]], at_s: Seconds) -> None:
        for name, fresh in taken:
            latencies_s = in_seconds(fresh)
            for listener in list(self.listeners):
                self._guarded(lambda: listener.samples(name, at_s, latencies_s))  # noqa: B023 - called at once

    def _close(self) -> Tick:
        now_s = self._clocks.steady()
        span_s, self._last_s = now_s - self._last_s, now_s
        self._sequence += 1
        counters, gauges, histograms = self._recorded()
        events, num_dropped = self._events.take()
        for one in self.open.values():
            events += one.take_events()
        faults = self.fault_count.value()
        fresh, self._faults_told = faults - self._faults_told, faults
        calls = {name: one.close() for name, one in list(self.open.items())}
        tick = Tick(
            source=self._source(),
            sequence=self._sequence,
            at_s=self._clocks.wall(),
            span_s=span_s,
            calls=calls,
            counters=counters,
            gauges=gauges,
            histograms=histograms,
            events=events + self._extra,
            num_events_dropped=num_dropped,
            num_faults=fresh,
            alarms=self.alarms(),
        )
        self._extra = []
        return tick

    def _recorded(self) -> tuple[dict[str, float], dict[str, float], dict[str, Histogram]]:
        counters: dict[str, float] = {}
        histograms: dict[str, Histogram] = {}
        totals: dict[bool, dict[str, float]] = {
            True: dict.fromkeys(("monitor_series_capped", "monitor_records_dropped"), 0.0),
            False: {},
        }
        for instrument in list(self.instruments.values()):
            if isinstance(instrument, Counter):
                counters |= instrument.take()
            elif isinstance(instrument, Gauge):
                self._gauges |= instrument.take()
            else:
                histograms |= instrument.take()
            totals[True]["monitor_series_capped"] += instrument.capped.value()
            totals[True]["monitor_records_dropped"] += instrument.dropped.value()
        for signal in self.signals:
            if (self._sequence - 1) % signal.every_ticks == 0:
                try:
                    reading = signal.read()
                except Exception as error:  # noqa: BLE001 - a machine may refuse any figure
                    self.fault(error)
                    continue
                self._gauges |= reading.gauges
                totals[signal.from_zero] |= reading.totals
        grown = {
            key: value
            for born, table in totals.items()
            for key, value in self._growth[born].since(table).items()
        }
        return counters | grown, dict(self._gauges), histograms

    def alarms(self) -> list[str]:
        """Names of what is alarming now, by all listeners."""
        found: list[str] = []
        for listener in list(self.listeners):
            found += self._guarded(listener.alarms) or ()
        return found

    def _guarded(self, call: Callable[[], T]) -> T | None:
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - a callback may raise anything
            self.fault(error)
            return None
