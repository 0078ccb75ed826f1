"""What happens in the store, as it happens: server-sent events.

::

    event: runs         data: {"newest": id or null, "total": 12}         the list has changed
    event: running      data: a `RunningRuns` without courses             some run has come, gone on or gone

Each stream looks at the store twice a second, which costs two `stat` calls and a listing of a folder as long as nothing
happens, and says what it found at its beginning, so that nothing is missed while a browser connects again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pyrometer.dashboard.documents import RunningRuns, running_now
from pyrometer.dashboard.stored import StoredRuns
from pyrometer.errors import PyrometerError
from pyrometer.quantity import Seconds
from pyrometer.record import Record, to_json
from pyrometer.store.running import Running

EVERY_S = 0.5
ALIVE_EVERY_S = 15.0
AGAIN_MS = 2000


class Newest(Record, frozen=True, kw_only=True):
    """What tells one state of the list from another."""

    newest: str | None
    total: int


class _State(NamedTuple):
    newest: Newest
    running: list[Running]


class Events:
    """`/events`: one stream for each page that is open.

    Args:
        runs: the store.
        is_ending: whether the server is about to stop, which ends the streams.
    """

    def __init__(self, runs: StoredRuns, is_ending: Callable[[], bool]) -> None:
        self._runs = runs
        self._is_ending = is_ending

    async def answer(self, _request: Request) -> Response:
        """A stream that ends with the server, or when the browser goes away."""
        return StreamingResponse(self._stream(), media_type="text/event-stream")

    async def _stream(self) -> AsyncIterator[bytes]:
        yield f"retry: {AGAIN_MS}\n\n".encode()
        told: _State | None = None
        silent_s: Seconds = 0.0
        while not self._is_ending():
            state = await run_in_threadpool(self._look, told)
            messages = list(_messages(told, state))
            silent_s = 0.0 if messages else silent_s + EVERY_S
            if silent_s >= ALIVE_EVERY_S:
                messages, silent_s = [b": still here\n\n"], 0.0
            for message in messages:
                yield message
            told = state
            await asyncio.sleep(EVERY_S)

    def _look(self, before: _State | None) -> _State:
        running = [msgspec.structs.replace(one, course=[]) for one in self._runs.running()]
        try:
            listing = self._runs.listing()
        except PyrometerError:  # locked or being replaced: what is not known has not changed
            return _State(before.newest if before is not None else Newest(newest=None, total=0), running)
        newest = listing.runs[0].id if listing.runs else None
        return _State(Newest(newest=newest, total=len(listing.runs)), running)


def _messages(before: _State | None, now: _State) -> list[bytes]:
    messages = []
    if before is None or now.newest != before.newest:
        messages.append(message("runs", now.newest))
    if before is None or now.running != before.running:
        messages.append(message("running", RunningRuns(running=running_now(now.running))))
    return messages


def message(event: str, record: Record) -> bytes:
    """One event with its data."""
    # JSON has no raw line breaks, which would end the message.
    return b"event: %s\ndata: %s\n\n" % (event.encode(), to_json(record))
