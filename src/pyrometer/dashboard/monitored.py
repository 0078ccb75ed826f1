"""What runs in production, as monitors tell it: a page, its data, and a stream of both.

::

    event: live         data: a `LiveDocument`        ticks have come, or a few seconds have passed
    event: away         data: a `Refused`             the source cannot be read; it is asked again
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pyrometer.dashboard.answers import answering, as_json, as_page
from pyrometer.dashboard.documents import Refused
from pyrometer.dashboard.events import AGAIN_MS, message
from pyrometer.errors import InputError
from pyrometer.monitor.live.watch import LiveWatch, last_moment_s
from pyrometer.redaction import redacted

EVERY_S = 0.5
QUIET_LOOKS = 10
"""Looks after which the page is told anew, though no tick has come: of processes that have become silent."""


class Monitored:
    """`/monitor`, `/monitor/events` and `/api/monitor`.

    Args:
        watch: reads the ticks.
        place: where they are read from, as it is shown.
        is_ending: whether the server is about to stop, which ends the streams.
    """

    def __init__(self, watch: LiveWatch, place: str, is_ending: Callable[[], bool]) -> None:
        self._watch, self._place, self._is_ending = watch, redacted(place), is_ending

    @answering
    def page(self, _request: Request) -> Response:
        """`/monitor`: what processes do now."""
        return as_page(
            "monitor.html.j2", now=redacted(self._watch.look(after_s=math.inf)), folder=self._place
        )

    @answering
    def data(self, _request: Request) -> Response:
        """`/api/monitor`: what `pyrometer monitor live --json` prints."""
        return as_json(redacted(self._watch.look()))

    async def events(self, _request: Request) -> Response:
        """A stream that ends with the server, or when the browser goes away."""
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[bytes]:
        yield f"retry: {AGAIN_MS}\n\n".encode()
        after_s, told, quiet = -math.inf, -1, 0
        while not self._is_ending():
            try:
                now = await run_in_threadpool(self._watch.look, after_s=after_s)
            except InputError as error:
                yield message("away", Refused(error=redacted(str(error))))
                await asyncio.sleep(QUIET_LOOKS * EVERY_S)
                continue
            quiet = 0 if told != self._watch.num_ticks else quiet + 1
            if quiet % QUIET_LOOKS == 0:
                told, after_s = self._watch.num_ticks, last_moment_s(now, after_s)
                yield message("live", redacted(now))
            await asyncio.sleep(EVERY_S)
