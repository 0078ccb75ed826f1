"""From notices of detectors to people: the desk decides, the delivery sends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyrometer.monitor.alerting.alert import Alert, Severity
from pyrometer.monitor.alerting.delivery import Courier, Delivery
from pyrometer.monitor.alerting.desk import AlertDesk, DeskSettings
from pyrometer.monitor.alerting.routes import Route
from pyrometer.monitor.detecting.listener import Notice
from pyrometer.quantity import Seconds

SEVERITIES = dict.fromkeys(("limit", "error-rate", "absence", "non-finite"), Severity.CRITICAL)
"""Of detectors; all others warn."""


class Alerts:
    """Told of every notice of a `Detection`; tells people.

    Args:
        routes: ways to tell, such as `Alertmanager("http://localhost:9093")`.
        labels: where this is: model, version, device, host.
        settings: when something is told.
        severities: of detectors, over those of `SEVERITIES`.
        collected: says what was collected on an alarm, such as the id of a stored run; it becomes evidence.
        clock: Unix time.
    """

    def __init__(
        self,
        routes: Sequence[Route],
        labels: Mapping[str, str] | None = None,
        *,
        settings: DeskSettings | None = None,
        severities: Mapping[str, Severity] | None = None,
        collected: Callable[[Notice], Sequence[str]] = lambda _notice: (),
        clock: Callable[[], Seconds] = time.time,
    ) -> None:
        self._desk, self._delivery = AlertDesk(settings), Delivery(routes)
        self._labels = dict(labels or {})
        self._severities = {**SEVERITIES, **(severities or {})}
        self._collected, self._clock = collected, clock
        self._lock = threading.Lock()
        self._courier = Courier(self.work)

    def __call__(self, notice: Notice) -> None:
        """Take a notice in; what it leads to is sent from another thread."""
        alert, now_s = self._alert(notice), self._clock()
        with self._lock:
            if notice.change.firing:
                self._desk.fire(alert, now_s)
            else:
                self._desk.end(alert, now_s)
            self._decide(now_s)  # at once: with a wait of zero what ends soon is told, too
        self._courier.wake()

    def work(self) -> None:
        """Send what is due; the thread does it every second."""
        now_s = self._clock()
        with self._lock:
            self._decide(now_s)
        self._delivery.send_due(now_s)

    def _decide(self, now_s: Seconds) -> None:
        for notice in self._desk.notices(now_s):
            self._delivery.put(notice)

    def stats(self) -> dict[str, Any]:
        """How delivery stands, per route; failures are counted here and nowhere told."""
        return self._delivery.stats()

    def close(self) -> None:
        """Send what is due, and end the thread."""
        self._courier.close()

    def _alert(self, notice: Notice) -> Alert:
        reading = notice.change.reading
        evidence = [reading.evidence]
        if notice.change.firing:
            evidence += self._collected(notice)
        return Alert(
            name=notice.name,
            severity=self._severities.get(notice.detector, Severity.WARNING),
            labels=self._labels,
            summary=reading.evidence,
            evidence=evidence,
            since_s=notice.change.since_s,
        )
