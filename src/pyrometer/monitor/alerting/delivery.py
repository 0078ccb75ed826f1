"""Notices on their way: from a thread of its own, retried within bounds, and never a reason for another notice.

A notifier that reports its own failure by notifying has filled logs with half a million errors elsewhere. Here a failure is counted,
and stands in `stats()`; nothing else comes of it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrometer.monitor.alerting.alert import Notice
from pyrometer.monitor.alerting.routes import NotDeliveredError, Route
from pyrometer.quantity import Seconds

MOST_WAITING = 100
MOST_TRIES = 5
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0
EVERY_S = 1.0


@dataclass
class _Way:
    """One route and what waits for it."""

    route: Route
    waiting: deque[tuple[Notice, int]] = field(default_factory=deque)
    not_before_s: Seconds = 0.0
    sent: int = 0
    failed: int = 0
    dropped: int = 0
    last_error: str = ""


class Delivery:
    """Sends notices by all routes; each route has its own queue, so that a dead one holds up no other."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._ways = [_Way(route) for route in routes]
        self._lock = threading.Lock()
        self._told: set[tuple[int, str]] = set()

    def put(self, notice: Notice) -> None:
        """Let a notice wait for every route that takes its severity; the oldest is dropped, and counted, where too many wait."""
        with self._lock:
            for place, way in enumerate(self._ways):
                ends = not notice.firing and (place, notice.group) in self._told
                if notice.severity < way.route.least and not ends:
                    continue
                if notice.firing:
                    self._told.add((place, notice.group))
                if len(way.waiting) >= MOST_WAITING:
                    way.waiting.popleft()
                    way.dropped += 1
                way.waiting.append((notice, 0))

    def send_due(self, now_s: Seconds) -> int:
        """Try the first notice of each route whose pause is over, and those behind it while they arrive; says how many did."""
        return sum(self._drain(way, now_s) for way in self._ways)

    def _drain(self, way: _Way, now_s: Seconds) -> int:
        arrived = 0
        while now_s >= way.not_before_s:
            with self._lock:
                if not way.waiting:
                    break
                notice, tries = way.waiting.popleft()
            try:
                way.route.send(notice)
            except NotDeliveredError as error:
                self._failed(way, (notice, tries + 1), now_s, error)
            except Exception as error:  # noqa: BLE001 - a route of anyone
                self._failed(
                    way, (notice, tries + 1), now_s, NotDeliveredError(f"{type(error).__name__}: {error}")
                )
            else:
                way.sent += 1
                arrived += 1
        return arrived

    def _failed(self, way: _Way, held: tuple[Notice, int], now_s: Seconds, error: NotDeliveredError) -> None:
        way.failed += 1
        way.last_error = str(error)
        tries = held[1]
        if error.is_final or tries >= MOST_TRIES:
            way.dropped += 1
            return
        pause_s = error.retry_after_s or FIRST_PAUSE_S * 2 ** (tries - 1)
        way.not_before_s = now_s + min(pause_s, LONGEST_PAUSE_S)
        with self._lock:
            way.waiting.appendleft(held)

    def stats(self) -> dict[str, dict[str, Any]]:
        """Per route: notices that were sent, failed attempts, notices that were given up, those that wait, and the last error."""
        return {
            way.route.name: {
                "sent": way.sent,
                "failed_attempts": way.failed,
                "dropped": way.dropped,
                "waiting": len(way.waiting),
                "last_error": way.last_error,
            }
            for way in self._ways
        }


class Courier:
    """A thread that calls `work` when it is woken, and about every second, until it is ended; what it raises is counted."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._woken = threading.Event()
        self._is_ended = False
        self._thread: threading.Thread | None = None
        self.faults = 0

    def wake(self) -> None:
        """Work now: what ends before anybody looked would never be told. A thread that did not survive a fork is begun anew."""
        self._woken.set()
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="pyrometer-alerts", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._is_ended:
            self._woken.wait(EVERY_S)
            self._woken.clear()
            self._once()

    def _once(self) -> None:
        try:
            self._work()
        except Exception:  # noqa: BLE001 - it must go on
            self.faults += 1

    def close(self, timeout_s: Seconds = 2.0) -> None:
        """Work once more, and end."""
        self._is_ended = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join(timeout_s)
        self._once()
