"""The server as an ASGI application: the Open Inference Protocol, version 2, health, metrics, and a page that explains it.

::

    GET  /v2   /v2/health/live   /v2/health/ready
    GET  /v2/models/NAME[/versions/V]   …/ready   …/stats   …/prediction
    POST /v2/models/NAME[/versions/V]/infer
    POST /v2/repository/index   /v2/repository/models/NAME/load
    GET  /metrics   /openapi.json   /docs

A request may carry `timeout` (µs) and `priority` (1 to 3, the lower the more urgent) among its parameters, as for Triton.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from pyrometer.errors import InputError, PyrometerError
from pyrometer.listening import is_token
from pyrometer.monitor.export.prometheus import CONTENT_TYPE
from pyrometer.monitor.monitor import Monitor
from pyrometer.quantity import Bytes
from pyrometer.serving.http import answers, pages
from pyrometer.serving.http.answers import (
    ClientGoneError,
    Exchange,
    Headers,
    Receive,
    Response,
    Scope,
    Send,
    document,
)
from pyrometer.serving.http.infer import LARGE_BYTES, Asked, InferEndpoint, is_large
from pyrometer.serving.running.batcher import Batcher, Outcome, RequestError
from pyrometer.serving.running.counting import Counting
from pyrometer.version import __version__

DIRECT_BYTES: Bytes = 1 << 16
"""The largest body that is answered without a task; uvicorn stops reading beyond until somebody takes what has come."""
OPEN_PATHS = frozenset({"/v2/health/live", "/v2/health/ready"})
"""Need no token: those who ask are probes."""
EXTENSIONS = ["binary_tensor_data", "parameters", "statistics", "model_repository"]


class Application:
    """Answers requests for one model.

    Args:
        name: of the model.
        batcher: runs it.
        monitor: watches every request.
        counting: what the batcher tells.
        most_bytes: of a body.
        token: that every request but those for health needs; None lets everybody in.
        reload: loads the newest version from where the present one came from.
        predict: what the policy should do to recent arrivals; takes a second.
        metrics: makes the page of metrics, where it tells of more than the monitor.
    """

    def __init__(
        self,
        name: str,
        batcher: Batcher,
        monitor: Monitor,
        counting: Counting,
        *,
        most_bytes: Bytes,
        token: str | None = None,
        reload: Callable[[], Awaitable[str]] | None = None,
        predict: Callable[[], Any] | None = None,
        metrics: Callable[[], Awaitable[bytes]] | None = None,
    ) -> None:
        self.name = name
        self.batcher = batcher
        self.monitor = monitor
        self.endpoint = InferEndpoint(name, batcher, monitor)
        self.heads: dict[bytes, Headers] = {}
        """Of requests that may be answered directly, by their bytes; the server fills it."""
        self._counting = counting
        self._most_bytes = most_bytes
        self._token = token
        self._reload = reload
        self._predict = predict
        self._metrics = metrics or (lambda: asyncio.to_thread(monitor.metrics_page))
        self._infer_path = f"/v2/models/{name}/infer"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; what is wrong with it is told in one line."""
        if scope["type"] != "http":
            return
        try:
            response = await self._response(scope, receive)
        except (RequestError, InputError) as error:
            response = answers.refusal(error)
        except (ClientGoneError, asyncio.CancelledError):
            return
        await answers.respond(send, response)

    async def _response(self, scope: Scope, receive: Receive) -> Response:
        headers = answers.read_headers(scope)
        path, method = scope["path"], scope["method"]
        if not self._lets_in(path, headers):
            raise RequestError(401, "token: missing or wrong; send `Authorization: Bearer TOKEN`")
        exchange = Exchange(scope, receive, headers)
        if path == self._infer_path and method == "POST":
            return await self._infer(exchange, None)
        return await self._other(path, method, exchange)

    def _lets_in(self, path: str, headers: Headers) -> bool:
        return self._token is None or path in OPEN_PATHS or is_token(headers.authorization, self._token)

    def direct(self, scope: Scope) -> Headers | None:
        """What the head of a request says whose body may go to `endpoint` as it is; None for all that needs another look."""
        if scope["path"] != self._infer_path or scope["method"] != "POST":
            return None
        try:
            headers = answers.read_headers(scope)
        except RequestError:
            return None  # and is refused where all heads are looked at
        length = headers.content_length
        may = length is not None and length <= min(DIRECT_BYTES, self._most_bytes) and headers.is_plain
        return headers if may and self._lets_in(self._infer_path, headers) else None

    async def _infer(self, exchange: Exchange, version: str | None) -> Response:
        scope, receive, headers = exchange
        if not headers.is_plain:
            raise RequestError(
                415,
                f"Content-Encoding: got {headers.encoding[:40].decode('latin-1')!r}; send the body as it is",
            )
        body = await answers.read_body(headers, receive, self._most_bytes)
        read = partial(self.endpoint.read, body, headers.json_length, version)
        asked = await asyncio.to_thread(read) if len(body) > LARGE_BYTES else read()
        outcome = await _outcome(scope, asked)
        return (
            await asyncio.to_thread(asked.response, outcome) if is_large(outcome) else asked.response(outcome)
        )

    async def _other(self, path: str, method: str, exchange: Exchange) -> Response:
        parts = path.strip("/").split("/")
        if parts[:2] == ["v2", "models"] and len(parts) > 2:
            return await self._of_model(parts[2:], method, exchange)
        if parts[:2] == ["v2", "repository"]:
            return await self._of_repository(parts[2:], method)
        if method not in {"GET", "HEAD"}:
            raise RequestError(405, f"{method} {path}: legal is GET, or POST to {self._infer_path}")
        return await self._page(path)

    async def _page(self, path: str) -> Response:
        versions = self.batcher.versions
        match path:
            case "/v2":
                return document({"name": "pyrometer", "version": __version__, "extensions": EXTENSIONS})
            case "/v2/health/live":
                return _state(live=self.batcher.is_alive)
            case "/v2/health/ready":
                return _state(ready=self.is_ready)
            case "/metrics":
                return Response(await self._metrics(), content_type=CONTENT_TYPE.encode())
            case "/openapi.json":
                return document(pages.openapi(self.name, versions.get(versions.current).signature))
            case "/" | "/docs":
                page = pages.page(self.name, versions.get(versions.current).signature).encode()
                return Response(page, content_type=b"text/html; charset=utf-8")
        raise RequestError(404, f"{path[:200]}: there is no such page; /docs lists all")

    @property
    def is_ready(self) -> bool:
        """Whether requests are accepted."""
        return self.batcher.is_alive and not self.batcher.is_draining

    async def _of_model(self, parts: list[str], method: str, exchange: Exchange) -> Response:
        name, *rest = parts
        if name != self.name:
            raise RequestError(404, f"model {name[:80]}: is not served here; legal is {self.name}")
        version = None
        if rest[:1] == ["versions"] and len(rest) > 1:
            version, rest = rest[1], rest[2:]
            if version not in self.batcher.versions.names:
                legal = ", ".join(self.batcher.versions.names)
                raise RequestError(404, f"version {version[:80]}: is not loaded; legal are {legal}")
        action = "/".join(rest)
        match action, method:
            case "infer", "POST":
                return await self._infer(exchange, version)
            case "", "GET":
                return document(self._metadata(version))
            case "ready", "GET":
                return _state(ready=self.is_ready)
            case "stats", "GET":
                return document(self._statistics())
            case "prediction", "GET":
                measured = self._statistics()
                predicted = None if self._predict is None else await asyncio.to_thread(self._predict)
                return document({**measured, "predicted": predicted})
        raise RequestError(
            404, f"{method} {action[:80]}: legal are POST infer, GET ready, GET stats, GET prediction"
        )

    def _metadata(self, version: str | None) -> dict[str, Any]:
        versions = self.batcher.versions
        signature = versions.get(version or versions.current).signature
        return {
            "name": self.name,
            "versions": versions.names,
            "platform": "pytorch_pyrometer",
            "inputs": [pages.told(spec) for spec in signature.inputs],
            "outputs": [pages.told(spec) for spec in signature.outputs],
        }

    def _statistics(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "version": self.batcher.versions.current,
            "waiting_rows": self.batcher.num_waiting,
            "measured": self._counting.summary(),
        }

    async def _of_repository(self, parts: list[str], method: str) -> Response:
        if parts == ["index"] and method == "POST":
            versions = self.batcher.versions
            return document(
                [{"name": self.name, "version": name, "state": "READY"} for name in versions.names]
            )
        if parts == ["models", self.name, "load"] and method == "POST" and self._reload is not None:
            try:
                version = await self._reload()
            except PyrometerError as error:
                raise RequestError(409, f"the present version stays: {error}") from error
            return document({"name": self.name, "version": version})
        raise RequestError(
            404, "legal are POST index, and POST models/NAME/load where a target can be loaded again"
        )


GONE = "pyrometer.gone"
"""Where in the scope of a request the server finds what to call when its client goes away."""


def client_gone(scope: Scope | None) -> None:
    """To be called by the server when a connection is lost."""
    callback = None if scope is None else scope.pop(GONE, None)
    if callback is not None:
        callback()


async def _outcome(scope: Scope, asked: Asked) -> Outcome:
    """Wait for the batch of a request; a client that goes away meanwhile takes it out of the queue."""
    done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    asked.submit(lambda outcome: None if done.done() else done.set_result(outcome))
    scope[GONE] = done.cancel
    try:
        return await done
    except asyncio.CancelledError:  # so says a server, other than ours, whose client has gone
        asked.cancel()
        raise


def _state(**states: bool) -> Response:
    return document(states, 200 if all(states.values()) else 503)
