"""Plain ASGI: reading a body within limits, and sending an answer; nothing between the server and the queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

import msgspec

from pyrometer.errors import InputError
from pyrometer.quantity import Bytes
from pyrometer.serving.running.batcher import RequestError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Pairs = tuple[tuple[bytes, bytes], ...]

JSON = b"application/json"


class ClientGoneError(Exception):
    """The client went away in the middle of its request."""


class Headers(NamedTuple):
    """What matters of the headers of a request."""

    content_length: int | None
    json_length: int | None
    encoding: bytes
    authorization: bytes

    @property
    def is_plain(self) -> bool:
        """Whether the body is what it says, and not compressed."""
        return self.encoding in {b"", b"identity"}


class Response(NamedTuple):
    """What a request is answered with."""

    body: bytes
    status: int = 200
    content_type: bytes = JSON
    more: Pairs = ()

    def headers(self) -> Pairs:
        """All of them that are not the server's."""
        length = b"%d" % len(self.body)
        return ((b"content-type", self.content_type), (b"content-length", length), *self.more)


def document(content: Any, status: int = 200) -> Response:
    """An answer in JSON."""
    return Response(msgspec.json.encode(content), status)


def refusal(error: RequestError | InputError) -> Response:
    """What is wrong, as the protocol has it."""
    status = 400
    more: Pairs = ()
    if isinstance(error, RequestError):
        status = error.status
        if error.retry_after_s is not None:
            more = ((b"retry-after", b"%d" % max(1, round(error.retry_after_s + 0.5))),)
    return document({"error": str(error)}, status)._replace(more=more)


class Exchange(NamedTuple):
    """A request that is being answered."""

    scope: Scope
    receive: Receive
    headers: Headers


def read_headers(scope: Scope) -> Headers:
    """Read them.

    Raises:
        RequestError: a length that is none.
    """
    length = json_length = None
    encoding = authorization = b""
    for name, value in scope["headers"]:
        if name == b"content-length":
            length = _length("Content-Length", value)
        elif name == b"inference-header-content-length":
            json_length = _length("Inference-Header-Content-Length", value)
        elif name == b"content-encoding":
            encoding = value
        elif name == b"authorization":
            authorization = value
    return Headers(length, json_length, encoding, authorization)


def _length(name: str, value: bytes) -> int:
    if not value.isdigit() or len(value) > 15:
        raise RequestError(400, f"{name}: got {value[:40].decode('latin-1')!r}; legal is a number of bytes")
    return int(value)


async def read_body(headers: Headers, receive: Receive, most_bytes: Bytes) -> bytes:
    """The body of a request.

    Raises:
        RequestError: it is too large.
        ClientGoneError: the client went away before it was whole.
    """
    if headers.content_length is not None and headers.content_length > most_bytes:
        raise _too_large(headers.content_length, most_bytes)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > most_bytes:
            raise _too_large(size, most_bytes)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(size: int, most_bytes: Bytes) -> RequestError:
    return RequestError(413, f"body: got {size} bytes or more; at most {most_bytes} are taken")


async def respond(send: Send, response: Response) -> None:
    """Send an answer."""
    await send({"type": "http.response.start", "status": response.status, "headers": [*response.headers()]})
    await send({"type": "http.response.body", "body": response.body})
