"""A client that sends requests at given times, whether the server keeps up or not; it runs in a process of its own and imports little."""

from __future__ import annotations

import asyncio
import re
import selectors
import time
from urllib.parse import urlsplit

from pyrometer.quantity import Seconds
from pyrometer.record import Record

MOST_OPEN = 900
"""Connections; a request that finds none is left out, so that the others come at their times."""
PATIENCE_S = 10.0
"""For answers, once all is sent."""
_LENGTH = re.compile(rb"content-length: (\d+)")


class Sending(Record, frozen=True, kw_only=True):
    """What is sent, where and when.

    Attributes:
        url: of the server.
        requests: unlike ones, each whole.
        times_s: from the beginning on, rising.
        places: among the requests, of what is sent then.
    """

    url: str
    requests: list[bytes]
    times_s: list[Seconds]
    places: list[int]


class Sent(Record, frozen=True, kw_only=True):
    """When the beginning was, on the monotonic clock of the machine."""

    began_s: Seconds


def send(order: Sending) -> Sent:
    """Send one request to see that all is ready, and then all of them at their times.

    Raises:
        RuntimeError: the first is answered by anything but outputs.
    """
    with asyncio.Runner(loop_factory=_make_loop) as runner:
        return runner.run(_send(order))


def _make_loop() -> asyncio.AbstractEventLoop:
    """One that wakes in time: others wait for whole milliseconds."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


async def _send(order: Sending) -> Sent:
    address = urlsplit(order.url)
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    running: set[asyncio.Task[bytes]] = set()

    async def ask(request: bytes) -> bytes:
        reader, writer = idle.pop() if idle else await asyncio.open_connection(address.hostname, address.port)
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        assert length is not None
        body = await reader.readexactly(int(length[1]))
        idle.append((reader, writer))
        return head + body

    first = await ask(order.requests[0])
    if b" 200 " not in first.partition(b"\r\n")[0]:
        raise RuntimeError(first.decode(errors="replace"))
    began_s = time.monotonic()
    for at_s, place in zip(order.times_s, order.places, strict=True):
        await asyncio.sleep(max(0.0, began_s + at_s - time.monotonic()))
        if len(running) < MOST_OPEN:
            running.add(task := asyncio.ensure_future(ask(order.requests[place])))
            task.add_done_callback(running.discard)
    if running:
        await asyncio.wait(running, timeout=PATIENCE_S)
    for _, writer in idle:
        writer.close()
    return Sent(began_s=began_s)
