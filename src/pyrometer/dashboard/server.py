"""Serving the dashboard until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from pyrometer.dashboard.access import is_loopback, names_of
from pyrometer.dashboard.app import make_app
from pyrometer.errors import InputError, UsageError
from pyrometer.monitor.live.sources import FOLDER, STREAM, FolderTicks, open_source
from pyrometer.monitor.live.watch import LiveWatch
from pyrometer.quantity import Seconds
from pyrometer.store.place import Location

TOKEN_BYTES = 32
FAREWELL_S: Seconds = 3.0
"""How long an answer that is under way may take once the server is asked to stop."""


class Dashboard:
    """A server of one store, bound to its address; it answers from `serve` on.

    Args:
        location: of the store: a folder, or `postgresql://…`.
        host: the address to listen on.
        port: 0 for any that is free.
        allow_remote: whether other machines may reach it.
        monitor: where monitors tell of themselves: a folder, or the URL of a Redis.
        stream: the stream of that Redis.

    Raises:
        UsageError: other machines could reach it, and that was not asked for.
        InputError: the address cannot be used, or the monitors' place cannot be read.
    """

    def __init__(
        self,
        location: Location,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        allow_remote: bool = False,
        monitor: str | None = None,
        stream: str = STREAM,
    ) -> None:
        if not allow_remote and not is_loopback(host):
            raise UsageError(
                f"--host {host}: other machines could reach the dashboard, over plain HTTP; "
                "reach this one by ssh -L, or add --allow-remote"
            )
        # The folder that monitors write to by default may be made later.
        source = FolderTicks(Path(FOLDER)) if monitor is None else open_source(monitor, stream)
        self._socket = _bound(host, port)
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        app = make_app(
            location,
            token=self.token,
            names=names_of(host),
            monitor=(LiveWatch(source), monitor or FOLDER),
            is_ending=lambda: self._server.should_exit,
        )
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_level="error",
                access_log=False,
                lifespan="off",
                ws="none",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=int(FAREWELL_S),
            )
        )

    @property
    def url(self) -> str:
        """What to open; the token in it lets a browser in."""
        host, port = self._socket.getsockname()[:2]
        shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
        return f"http://{shown}:{port}/?token={self.token}"

    def serve(self, *, on_ready: Callable[[], None] = lambda: None) -> None:
        """Answer until Ctrl-C or `stop`.

        Args:
            on_ready: called once browsers can connect.
        """
        self._socket.listen(128)
        on_ready()
        with contextlib.suppress(KeyboardInterrupt):  # the server stops first, then passes the signal on
            asyncio.run(self._server.serve(sockets=[self._socket]))

    def stop(self) -> None:
        """Let `serve` return soon; may be called from another thread."""
        self._server.should_exit = True


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InputError(
            f"--host {host}: {error.strerror}; legal is an address of this machine, such as 127.0.0.1"
        ) from error
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        raise InputError(
            f"{host}:{port}: {error.strerror}; pass another --port, or 0 for any that is free"
        ) from error
    return made
