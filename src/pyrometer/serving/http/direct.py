"""Requests for the model without a task, a future and a timer for each: read where their bytes arrive, answered where their batch ends.

That goes for a `POST` of moderate size; all else takes the usual way through ASGI. Clients send the same head again and again, so one
that was parsed as a whole is known by its bytes the next time.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from pyrometer.errors import InputError
from pyrometer.quantity import Seconds
from pyrometer.serving.http.answers import Headers, Response, refusal
from pyrometer.serving.http.infer import Asked, is_large
from pyrometer.serving.http.limits import LimitedProtocol
from pyrometer.serving.running.batcher import Outcome, RequestError

MOST_HEADS, LONGEST_HEAD = 1024, 2048
"""Heads that are known, and the bytes of one: 2 MiB at most, whatever clients send."""


class DirectProtocol(LimitedProtocol):
    """A connection; one request of it at a time is answered, and what comes meanwhile waits.

    Uvicorn makes it with our `Application` as its `app`.
    """

    _asked: Asked | None = None
    _begun: tuple[Any, Headers] | None = None
    _is_in_message = _is_reading = _is_last = False
    _early = b""
    _idle_since_s: Seconds | None = None

    def data_received(self, data: bytes) -> None:
        """Some bytes: a whole request that is known by its head, or some more of any."""
        if self._asked is not None or self._early or self.flow.write_paused:
            self._early += data
            self.flow.pause_reading()
            return
        self._idle_since_s = None
        is_between = not self._is_in_message and (self.cycle is None or self.cycle.response_complete)
        at = data.find(b"\r\n\r\n") + 4
        headers = self.app.heads.get(data[:at]) if is_between else None
        if headers is not None and len(data) - at == headers.content_length:
            self._began_s = None
            self._unset_keepalive_if_required()
            self._ask(headers, data[at:])
            return
        self._is_reading = True
        super().data_received(data)
        self._is_reading = False
        if self._begun is not None and not self._begun[0].more_body:
            self._answer_whole(data if is_between else b"")

    def on_message_begin(self) -> None:
        """The parser is within a request from here on."""
        self._is_in_message = True
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """It is between two of them."""
        self._is_in_message = False
        super().on_message_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """Called by uvicorn with the headers of a request: no task for one that is answered directly once its body is here."""
        if self._is_reading and cycle.keep_alive and not cycle.waiting_for_100_continue:
            headers = app.direct(cycle.scope)
            if headers is not None:
                self._begun = cycle, headers
                return
        super()._start_asgi_task(cycle, app)

    def _answer_whole(self, data: bytes) -> None:
        """A request that was begun is here as a whole.

        Args:
            data: all of it, where it came in one piece.
        """
        assert self._begun is not None
        (cycle, headers), self._begun = self._begun, None
        if self.pipeline or self._is_in_message or not cycle.keep_alive:
            super()._start_asgi_task(cycle, self.app)
            return
        cycle.response_started = cycle.response_complete = True
        head = data[: len(data) - len(cycle.body)]
        if head and len(head) <= LONGEST_HEAD:
            if len(self.app.heads) >= MOST_HEADS:
                self.app.heads.clear()
            self.app.heads[head] = headers
        self._ask(headers, cycle.body)

    def _ask(self, headers: Headers, body: bytes | bytearray) -> None:
        try:
            asked = self.app.endpoint.read(body, headers.json_length)
            asked.submit(self._answer)
        except (RequestError, InputError) as error:
            self._respond(refusal(error))
        else:
            self._asked = asked

    def _answer(self, outcome: Outcome) -> None:
        asked = self._asked
        if asked is None:
            return  # the client went away while its batch ran
        if is_large(outcome):
            task = self.loop.create_task(self._answer_later(asked, outcome))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        else:
            self._respond(asked.response(outcome))

    async def _answer_later(self, asked: Asked, outcome: Outcome) -> None:
        response = await asyncio.to_thread(asked.response, outcome)
        if self._asked is not None:
            self._respond(response)

    def _respond(self, response: Response) -> None:
        self._asked = None
        parts = [STATUS_LINE[response.status]]
        for name, value in (*self.server_state.default_headers, *response.headers()):
            parts += (name, b": ", value, b"\r\n")
        parts += (b"connection: close\r\n\r\n" if self._is_last else b"\r\n", response.body)
        self.transport.write_whole(b"".join(parts))
        if self._is_last:
            self.transport.close()
            return
        self._idle_since_s = self.loop.time()
        self._go_on_soon()

    def _go_on_soon(self) -> None:
        if self._early:
            self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Read what came while a request was answered, or while the client did not read."""
        if self._early and self._asked is None and not self.flow.write_paused and self.parser is not None:
            early, self._early = self._early, b""
            self.flow.resume_reading()
            self.data_received(early)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self._go_on_soon()

    def shutdown(self) -> None:
        """The server ends: the answer under way is the last one."""
        if self._asked is None:
            super().shutdown()
        else:
            self._is_last = True

    def connection_lost(self, exc: Exception | None) -> None:
        """A request whose client is gone need not be answered."""
        super().connection_lost(exc)
        self._early, self._begun = b"", None
        if self._asked is not None:
            self._asked.cancel()
            self._asked = None

    def close_if_late(self, now_s: Seconds, slow_s: Seconds) -> None:
        """Close the connection where its request takes too long to arrive, or where nobody asks any more."""
        super().close_if_late(now_s, slow_s)
        if self._idle_since_s is not None and now_s - self._idle_since_s > self.timeout_keep_alive:
            self.transport.close()
