"""Pages such as `/metrics` over HTTP, from threads of its own: rendered once per tick, however many ask."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from pyrometer.listening import is_token, url_of
from pyrometer.monitor.export.prometheus import CONTENT_TYPE

_MOST_BYTES = 1 << 16
"""Of what a client sends."""


class Page(NamedTuple):
    """What a path answers with."""

    content_type: str
    body: bytes
    status: int = 200


HEALTH = "/healthz"
"""Needs no token: those who ask are probes."""


class MetricsServer:
    """Serves pages such as `/metrics`, and `/healthz`."""

    def __init__(
        self, address: str, port: int, pages: dict[str, Callable[[], Page]], *, token: str | None = None
    ) -> None:
        """Listen, and answer those that bring the token where there is one; raises OSError where the port is taken."""
        handler = type("_Handler", (_Handler,), {"pages": {HEALTH: _healthy, **pages}, "token": token})
        self._server = _Server((address, port), handler)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="pyrometer-metrics", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        """How a client of this machine reaches it."""
        return url_of(self._server.socket)

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

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scraper that has gone is no news; the base class would print a traceback among the program's own output."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    pages: dict[str, Callable[[], Page]]
    token: str | None
    timeout = 10.0  # of a client that says nothing

    def do_GET(self) -> None:
        """Answer one request."""
        path = self.path.partition("?")[0]
        shown = self.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if self.token is not None and path != HEALTH and not is_token(shown, self.token):
            self.send_error(401, "token: missing or wrong; send Authorization: Bearer TOKEN")
            return
        make = self.pages.get(path)
        if make is None:
            self.send_error(404, f"legal are {', '.join(self.pages)}")
            return
        try:
            page = make()
        except Exception as error:  # noqa: BLE001 - the next scrape may succeed
            self.send_error(500, f"{type(error).__name__}: {error}"[:200])
            return
        self.send_response(page.status)
        self.send_header("Content-Type", page.content_type)
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        self.wfile.write(page.body)

    def do_POST(self) -> None:
        """Answer as to GET: a webhook sends what it knows, and nothing of it is needed."""
        length = self.headers.get("Content-Length", "0")
        self.rfile.read(min(int(length), _MOST_BYTES) if length.isdigit() else 0)
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """A scrape every few seconds is no news."""
