"""A replica: a deployment that Ray Serve starts, asks for its health, and lets answer requests with our own queue and batches.

Ray starts, watches and replaces replicas, and its proxy sends them requests; its `@serve.batch` is not used, which knows no buckets.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, NamedTuple

from pyrometer.monitor.export.prometheus import joined_pages
from pyrometer.serving.deployment import Candidate, Deployment
from pyrometer.serving.http.app import Application
from pyrometer.serving.http.limits import LimitedProtocol
from pyrometer.serving.settings import ServeSettings
from pyrometer.serving.starting.screen import screen
from pyrometer.serving.starting.source import Source
from pyrometer.tuning.shapes.axes import Dims

METRICS_S = 5.0
"""That replicas have to tell their metrics; one that is dying is left out of the page."""


class Order(NamedTuple):
    """What replicas are to serve, as it travels to them.

    Attributes:
        folder: that targets are relative to; None where Ray starts them in a copy of it.
    """

    source: Source
    settings: ServeSettings
    buckets: Dims
    candidate: Candidate | None
    token: str | None
    url: str
    folder: str | None


_applications: list[Application] = []


def application() -> Application:
    """That of this process, which Ray asks for once its replica is made."""
    return _applications[-1]


class Replica:
    """One of the processes that serve a model; Ray calls its methods by name.

    Args:
        order: what is served.

    Raises:
        PyrometerError: it cannot be served; says why.
    """

    def __init__(self, order: Order) -> None:
        from ray import serve
        from uvicorn.config import HTTP_PROTOCOLS

        # Head and body of an answer leave this process in one system call, so that a dying one leaves none cut between them.
        HTTP_PROTOCOLS["auto"] = f"{LimitedProtocol.__module__}:{LimitedProtocol.__name__}"
        place = contextlib.nullcontext() if order.folder is None else contextlib.chdir(order.folder)
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(place)
        self._deployment = Deployment(
            order.source,
            order.settings,
            order.buckets,
            candidate=order.candidate,
            token=order.token,
            url=order.url,
        )
        self._stack.callback(self._deployment.close)
        self._deployment.prepare()
        context = serve.get_replica_context()
        self._handle = serve.get_deployment_handle(context.deployment, context.app_name)
        # Ray's proxy asks any replica, and sums of one after those of another would look like restarts.
        self._app = self._deployment.application(
            labels={"replica": context.replica_tag}, metrics=self._pages, may_reload=False
        )
        self._stack.enter_context(self._deployment.watched(self._app))
        _applications.append(self._app)

    async def _pages(self) -> bytes:
        asked = self._handle.broadcast("page")
        told: list[Any] = await asked.results_async(timeout_s=METRICS_S, return_exceptions=True)
        return joined_pages(page for page in told if isinstance(page, bytes))

    async def page(self) -> bytes:
        """The metrics of this replica."""
        return await asyncio.to_thread(self._app.monitor.metrics_page)

    async def screen(self) -> str:
        """What the start prints."""
        return screen(self._deployment)

    async def check_health(self) -> None:
        """Let Ray put another replica in the place of one whose model hangs, or takes too much memory.

        Raises:
            RuntimeError: it does.
        """
        if self._deployment.too_much:
            raise RuntimeError(f"memory: {self._deployment.too_much} bytes (most-memory)")
        if not self._app.batcher.is_alive:
            raise RuntimeError("the model hangs")

    def __del__(self) -> None:
        """End, once Ray has waited for what was accepted."""
        self._stack.close()
