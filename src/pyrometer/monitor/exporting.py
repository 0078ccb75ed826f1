"""Everything that one process sends its ticks to: files, streams, a page; made anew in a forked child."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyrometer.listening import require_token, token_from
from pyrometer.monitor.export.json_lines import JsonLines
from pyrometer.monitor.export.metrics import Metric
from pyrometer.monitor.export.outlet import Outlet, Sink
from pyrometer.monitor.export.processes import SharedTotals
from pyrometer.monitor.export.prometheus import PrometheusText
from pyrometer.monitor.export.server import MetricsServer, Page, metrics_page
from pyrometer.monitor.settings import TOKEN, MonitorSettings
from pyrometer.monitor.tick import Tick
from pyrometer.monitor.totals import RunningTotals, Totals, with_quantiles
from pyrometer.monitor.windows import MINUTE_S, Windows
from pyrometer.quantity import Seconds


class Exports:
    """Takes every tick of one process.

    Raises:
        InputError: a package that a setting needs is missing, or the token is too short.
        UsageError: other machines could read the metrics, and no token keeps them out.
    """

    def __init__(
        self,
        settings: MonitorSettings,
        declared: Callable[[], Mapping[str, Metric]],
        snapshot: Callable[[], dict[str, Any]],
        fault: Callable[[BaseException], None],
    ) -> None:
        self._token = token_from(os.environ, TOKEN)
        if settings.port is not None:
            require_token(settings.address, self._token, TOKEN, name="monitor: address")
        self._settings = settings
        self._declared = declared
        self._snapshot = snapshot
        self._fault = fault
        self._extra: list[Sink] = []
        self.server: MetricsServer | None = None
        self._begin()

    def _begin(self) -> None:
        settings = self._settings
        self.windows = Windows()
        self.totals = RunningTotals()
        self._shared = SharedTotals(Path(settings.processes)) if settings.processes else None
        self._text = PrometheusText()
        self._rendered: tuple[float, bytes] | None = None
        self._port_is_taken = False
        self.outlets = [Outlet(sink, self._fault) for sink in (*self._own_sinks(), *self._extra)]

    def _own_sinks(self) -> list[Sink]:
        settings = self._settings
        sinks: list[Sink] = []
        if settings.folder:
            sinks.append(
                JsonLines(
                    Path(settings.folder).absolute(),
                    file_bytes=settings.file_bytes,
                    num_files=settings.num_files,
                )
            )
        if settings.redis:
            from pyrometer.monitor.export.redis_stream import RedisStream

            sinks.append(RedisStream(settings.redis, stream=settings.stream, length=settings.stream_length))
        if settings.otlp:
            from pyrometer.monitor.export.otlp import OtlpMetrics

            sinks.append(OtlpMetrics(settings.otlp, self.totals.now, self._declared))
        return sinks

    def add(self, sink: Sink) -> None:
        """Send ticks there, too."""
        self._extra.append(sink)
        self.outlets.append(Outlet(sink, self._fault))

    def take(self, tick: Tick) -> None:
        """One more tick; nothing here waits for a disk or a network, but for the small file that processes share."""
        self.windows.add(tick)
        self.totals.add(tick)
        self.totals.add_dropped(sum(outlet.num_dropped for outlet in self.outlets))
        for outlet in self.outlets:
            outlet.put(tick)
        if self._shared is not None:
            try:
                self._shared.write(self.totals.now())
            except OSError as error:
                self._fault(error)
        self.serve()

    def serve(self) -> None:
        """Listen on the port, if there is one to listen on and no other process has it."""
        settings = self._settings
        if settings.port is None or self.server is not None:
            return
        pages = {"/metrics": metrics_page(self.render), "/snapshot": self._snapshot_page}
        try:
            self.server = MetricsServer(settings.address, settings.port, pages, token=self._token)
        except OSError as error:
            if self._shared is None and not self._port_is_taken:
                self._fault(error)
            self._port_is_taken = True  # another one has it, and when that one ends we may

    def render(self) -> bytes:
        """The page of metrics, made once per tick."""
        own = self.totals.now()
        if self._rendered is None or self._rendered[0] != own.at_s:
            told = self._told(own)
            self._rendered = (own.at_s, self._text.render(told, self._declared()))
        return self._rendered[1]

    def _told(self, own: Totals) -> Totals:
        if self._shared is not None:
            return self._shared.read()
        return with_quantiles(own, self.windows.last(MINUTE_S))

    def _snapshot_page(self) -> Page:
        return Page("application/json", json.dumps(self._snapshot()).encode())

    def flush(self, timeout_s: Seconds) -> bool:
        """Wait until everything is written; False where that takes too long."""
        return all(outlet.flush(timeout_s) for outlet in self.outlets)

    def close(self, timeout_s: Seconds) -> None:
        """Write what waits, and let go."""
        for outlet in self.outlets:
            outlet.close(timeout_s)
        if self.server is not None:
            self.server.close()
            self.server = None

    def forget(self) -> None:
        """Begin anew in a forked child, without the parent's port, connections and figures."""
        if self.server is not None:
            self.server.let_go()
            self.server = None
        self._begin()
