"""Listening, and ending: on SIGTERM nothing new is accepted, what was accepted is answered, and then the process ends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar, cast

import uvicorn

from pyrometer.quantity import Seconds
from pyrometer.serving.http.app import Application
from pyrometer.serving.http.direct import DirectProtocol

T = TypeVar("T")
TICKS_PER_S = 10
"""How often uvicorn calls `on_tick`."""


class InferenceServer(uvicorn.Server):
    """Uvicorn with limits, and with an end that loses nothing.

    Args:
        app: answers.
        drain_s: for accepted requests, once it is asked to end.
        slow_s: for a request to arrive.
    """

    def __init__(self, app: Application, *, drain_s: Seconds, slow_s: Seconds) -> None:
        super().__init__(
            uvicorn.Config(
                cast("Any", app),
                http=cast("Any", DirectProtocol),
                ws="none",
                lifespan="off",
                log_level="error",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=max(1, round(drain_s)),
                backlog=2048,
            )
        )
        self._app = app
        self._drain_s = drain_s
        self._slow_s = slow_s
        self._loop = asyncio.get_running_loop()
        self._ending: asyncio.Task[None] | None = None

    async def run_until_ended(self, bound: socket.socket, on_ready: Callable[[], None]) -> None:
        """Answer until a signal or `stop`.

        Args:
            bound: listens from here on.
            on_ready: called once clients can connect.
        """
        bound.listen(2048)
        on_ready()
        with contextlib.suppress(KeyboardInterrupt):
            await self.serve(sockets=[bound])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as uvicorn has it
        """End gracefully at the first signal, at once at the second."""
        if self._ending is not None:
            self.force_exit = self.should_exit = True
        else:
            self.stop()

    def stop(self) -> None:
        """Begin to end; may be called from any thread."""
        self._loop.call_soon_threadsafe(self._begin_to_end)

    def _begin_to_end(self) -> None:
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._app.batcher.drain(), self._drain_s)
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Once a second, look for requests that take too long to arrive."""
        if counter % TICKS_PER_S == 0:
            now_s = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                cast("DirectProtocol", connection).close_if_late(now_s, self._slow_s)
        return await super().on_tick(counter)


def run_loop(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a server to its end; on uvloop where it is installed."""
    try:
        import uvloop

        factory: Any = uvloop.new_event_loop
    except ImportError:
        factory = None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main())
