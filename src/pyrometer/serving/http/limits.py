"""What uvicorn does not limit by itself: how long a request may take to arrive, and how long its headers may be.

A client that sends a byte now and then would hold a connection for ever. Headers have `slow_s`; a body has as long, and a second
more for each 64 KiB that came. Head and body of an answer, which uvicorn writes one after the other, go out in one system call.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from pyrometer.quantity import Seconds
from pyrometer.serving.http.app import client_gone

MOST_HEADER_BYTES = 1 << 16
LEAST_BYTES_PER_S = 1 << 16
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class JoinedWrites:
    """A transport that holds what is written until the next write, or the loop's next turn.

    Args:
        transport: of the connection.
        loop: that it belongs to.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held = b""

    def __getattr__(self, name: str) -> Any:
        """All else is the transport's."""
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send with what is held, or hold it."""
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held + data)
        elif data:
            self._held = data
            self._loop.call_soon(self.flush)

    def write_whole(self, data: bytes) -> None:
        """Send what needs nothing behind it."""
        self.flush()
        self._transport.write(data)

    def flush(self) -> None:
        """Send what is held."""
        if self._held:
            held, self._held = self._held, b""
            self._transport.write(held)

    def close(self) -> None:
        """Once all is sent."""
        self.flush()
        self._transport.close()


class LimitedProtocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """The protocol of uvicorn, that of httptools where it is installed, which notes how a request arrives."""

    _began_s: Seconds | None = None
    _num_bytes = 0
    _whole: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """A client may also connect and say nothing."""
        super().connection_made(JoinedWrites(transport, self.loop))
        self._began_s = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Some more of a request."""
        if self._began_s is None:
            self._began_s = self.loop.time()
            self._num_bytes = 0
        self._num_bytes += len(data)
        super().data_received(data)
        cycle = self.cycle
        if cycle is None or cycle is self._whole:  # its headers are not whole yet
            if self._num_bytes > MOST_HEADER_BYTES:
                self._refuse(_TOO_LONG)
        elif not cycle.more_body:
            self._whole, self._began_s = cycle, None

    def connection_lost(self, exc: Exception | None) -> None:
        """A request whose client is gone need not be answered."""
        super().connection_lost(exc)
        client_gone(self.scope)

    def close_if_late(self, now_s: Seconds, slow_s: Seconds) -> None:
        """Close the connection where its request takes too long to arrive."""
        if self._began_s is None:
            return
        in_body = self.cycle is not None and self.cycle is not self._whole
        allowed_s = slow_s + (self._num_bytes / LEAST_BYTES_PER_S if in_body else 0.0)
        if now_s - self._began_s > allowed_s:
            self._refuse(_TOO_SLOW)

    def _refuse(self, answer: bytes) -> None:
        if not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                self.transport.write(answer)
            self.transport.close()
