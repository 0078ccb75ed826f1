"""A sink with a queue and a thread of its own: one that hangs or fails loses the oldest ticks, which are counted."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from pyrometer.monitor.tick import Tick
from pyrometer.quantity import Seconds

MOST_WAITING = 600
"""Ticks that an outage may last: ten minutes."""
LONGEST_PAUSE_S = 30.0


class Sink(Protocol):
    """Takes ticks somewhere."""

    def write(self, ticks: Sequence[Tick], /) -> None:
        """Send all of them; where it raises, they are given again."""

    def close(self) -> None:
        """Let go of files and connections."""


class Outlet:
    """Hands ticks to a sink from a thread of its own, again after a failure, with pauses that grow."""

    def __init__(
        self, sink: Sink, fault: Callable[[BaseException], None], *, most: int = MOST_WAITING
    ) -> None:
        self.sink = sink
        self.num_dropped = 0
        self._fault = fault
        self._most = most
        self._waiting: deque[Tick] = deque()
        self._wake = threading.Condition()
        self._is_busy = False
        self._ends = False
        self._thread: threading.Thread | None = None

    def put(self, tick: Tick) -> None:
        """Queue a tick; the oldest one gives way."""
        with self._wake:
            self._start()
            if len(self._waiting) >= self._most:
                self._waiting.popleft()
                self.num_dropped += 1
            self._waiting.append(tick)
            self._wake.notify_all()

    def _start(self) -> None:
        if self._thread is not None:
            return
        thread = threading.Thread(target=self._run, name="pyrometer-outlet", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down: `close` writes by itself
            return
        self._thread = thread

    def flush(self, timeout_s: Seconds) -> bool:
        """Wait until everything is written; False where that takes too long."""
        with self._wake:
            return self._wake.wait_for(lambda: not self._waiting and not self._is_busy, timeout_s)

    def close(self, timeout_s: Seconds) -> None:
        """Write what waits, within a time, and let go."""
        if self._thread is None and self._waiting:
            self._write_now()
        self.flush(timeout_s)
        with self._wake:
            self._ends = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)
        if self._thread is None or not self._thread.is_alive():
            self.sink.close()

    def _write_now(self) -> None:
        batch = list(self._waiting)
        self._waiting.clear()
        try:
            self.sink.write(batch)
        except Exception as error:  # noqa: BLE001 - as below
            self.num_dropped += len(batch)
            self._fault(error)

    def _run(self) -> None:
        pause_s = 0.0
        while batch := self._next(pause_s):
            try:
                self.sink.write(batch)
            except Exception as error:  # noqa: BLE001 - whatever a file or a network can raise
                self._fault(error)
                pause_s = min(max(2 * pause_s, 0.1), LONGEST_PAUSE_S)
                self._put_back(batch)
            else:
                pause_s = 0.0
                self._settled()

    def _next(self, pause_s: Seconds) -> list[Tick]:
        """What waits; after a failure not before a pause, and nothing once the end has come."""
        until = time.monotonic() + pause_s
        with self._wake:
            self._wake.wait_for(lambda: self._ends, pause_s)
            self._wake.wait_for(lambda: self._ends or (self._waiting and time.monotonic() >= until))
            if self._ends:
                return []
            batch = list(self._waiting)
            self._waiting.clear()
            self._is_busy = True
            return batch

    def _put_back(self, batch: list[Tick]) -> None:
        with self._wake:
            room = self._most - len(self._waiting)
            kept = batch[-room:] if room > 0 else []
            self.num_dropped += len(batch) - len(kept)
            self._waiting.extendleft(reversed(kept))
            self._is_busy = False

    def _settled(self) -> None:
        with self._wake:
            self._is_busy = False
            self._wake.notify_all()
