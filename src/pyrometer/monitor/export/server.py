"""`/metrics` over HTTP, from threads of its own: rendered once per tick, however many ask."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from pyrometer.monitor.export.prometheus import CONTENT_TYPE


class Page(NamedTuple):
    """What a path answers with."""

    content_type: str
    body: bytes


class MetricsServer:
    """Serves `/metrics`, `/snapshot` as JSON, and `/healthz`."""

    def __init__(self, address: str, port: int, pages: dict[str, Callable[[], Page]]) -> None:
        """Listen; raises OSError where the port is taken."""
        handler = type("_Handler", (_Handler,), {"pages": {"/healthz": _healthy, **pages}})
        self._server = _Server((address, port), handler)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="pyrometer-metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(1.0)

    def let_go(self) -> None:
        """Close the socket of the parent in a forked child, where the thread does not run."""
        self._server.socket.close()


def metrics_page(render: Callable[[], bytes]) -> Callable[[], Page]:
    """A page of Prometheus' text."""
    return lambda: Page(CONTENT_TYPE, render())


def _healthy() -> Page:
    return Page("text/plain", b"ok\n")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scraper that has gone is no news; the base class would print a traceback among the program's own output."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    pages: dict[str, Callable[[], Page]]
    timeout = 10.0  # of a client that says nothing

    def do_GET(self) -> None:
        """Answer one request."""
        make = self.pages.get(self.path.partition("?")[0])
        if make is None:
            self.send_error(404, f"legal are {', '.join(self.pages)}")
            return
        try:
            page = make()
        except Exception as error:  # noqa: BLE001 - the next scrape may succeed
            self.send_error(500, f"{type(error).__name__}: {error}"[:200])
            return
        self.send_response(200)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        self.wfile.write(page.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """A scrape every few seconds is no news."""
