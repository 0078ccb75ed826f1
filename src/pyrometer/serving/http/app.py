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
import math
from collections.abc import Awaitable, Callable
from typing import Any

from pyrometer.errors import InputError, PyrometerError
from pyrometer.listening import is_token
from pyrometer.monitor.export.prometheus import CONTENT_TYPE
from pyrometer.monitor.monitor import Monitor
from pyrometer.quantity import Bytes
from pyrometer.serving.batching.policy import PRIORITIES, USUAL
from pyrometer.serving.http import answers, pages
from pyrometer.serving.http.answers import ClientGoneError, Exchange, Headers, Receive, Scope, Send
from pyrometer.serving.http.tensors import (
    Decoded,
    Encoded,
    InferRequest,
    decode_request,
    encode_answer,
    require_outputs,
)
from pyrometer.serving.running.batcher import Batcher, Bucket, RequestError
from pyrometer.serving.running.counting import Counting
from pyrometer.serving.running.program import Program, Rows, Served
from pyrometer.tuning.shapes.axes import Sizes
from pyrometer.version import __version__

LARGE_BYTES = 1 << 18
"""Bodies beyond are read and written in a thread, so that others go on meanwhile."""
OPEN_PATHS = frozenset({"/v2/health/live", "/v2/health/ready"})
"""Need no token: those who ask are probes."""
EXTENSIONS = ["binary_tensor_data", "parameters", "statistics", "model_repository"]


class ModelError(Exception):
    """The model failed on a request."""


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
        self._counting = counting
        self._most_bytes = most_bytes
        self._token = token
        self._reload = reload
        self._predict = predict
        self._metrics = metrics or (lambda: asyncio.to_thread(monitor.metrics_page))
        self._infer_path = f"/v2/models/{name}/infer"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Encoded one request; what is wrong with it is told in one line."""
        if scope["type"] != "http":
            return
        try:
            headers = answers.read_headers(scope)
            path, method = scope["path"], scope["method"]
            if self._token is not None and path not in OPEN_PATHS:
                self._require_token(headers)
            if path == self._infer_path and method == "POST":
                await self._infer(Exchange(scope, receive, send, headers), None)
            else:
                await self._other(path, method, Exchange(scope, receive, send, headers))
        except RequestError as error:
            await answers.send_error(send, error)
        except ModelError as error:
            await answers.send_error(send, RequestError(500, str(error)))
        except InputError as error:
            await answers.send_error(send, RequestError(400, str(error)))
        except (ClientGoneError, asyncio.CancelledError):
            return

    def _require_token(self, headers: Headers) -> None:
        if not is_token(headers.authorization, self._token or ""):
            raise RequestError(401, "token: missing or wrong; send `Authorization: Bearer TOKEN`")

    async def _infer(self, exchange: Exchange, version: str | None) -> None:
        scope, receive, send, headers = exchange
        if headers.encoding not in {b"", b"identity"}:
            raise RequestError(
                415, f"Content-Encoding: got {headers.encoding[:40]!r}; send the body as it is"
            )
        body = await answers.read_body(headers, receive, self._most_bytes)
        program = self.batcher.versions.get(version or self.batcher.versions.current)
        specs = program.signature.inputs
        if len(body) > LARGE_BYTES:
            decoded = await asyncio.to_thread(decode_request, body, headers.json_length, specs)
        else:
            decoded = decode_request(body, headers.json_length, specs)
        require_outputs(program.signature.outputs, decoded.request)
        served = await self._answered(scope, program, decoded, version)
        answer = await self._encoded(program, served, decoded.request)
        if answer.json_length is None:
            await answers.send_bytes(send, answer.body)
            return
        more = ((b"inference-header-content-length", b"%d" % answer.json_length),)
        await answers.send_bytes(send, answer.body, content_type=b"application/octet-stream", more=more)

    async def _answered(
        self, scope: Scope, program: Program, decoded: Decoded, version: str | None
    ) -> Served:
        """Wait for the batch of a request; a client that goes away meanwhile takes it out of the queue."""
        sizes: Sizes = ()
        bucket: Sizes = ()
        if program.shaping is not None:
            names = [spec.name for spec in program.signature.inputs]
            sizes = program.shaping.sizes_of(names, [array.shape for array in decoded.arrays])
            bucket = program.shaping.bucket(sizes)
        timeout_s, priority = _urgency(decoded.request)
        waiting = self.batcher.submit(
            Rows(decoded.arrays, decoded.rows, sizes),
            Bucket(bucket, version),
            timeout_s=timeout_s,
            priority=priority,
        )
        scope[GONE] = lambda: self.batcher.cancel(waiting)
        with self.monitor.request("infer", trace_id=decoded.request.id) as request:
            request.units = decoded.rows
            if request.is_sample:
                request.shape = ",".join("x".join(map(str, array.shape)) for array in decoded.arrays)
            try:
                served: Served = await waiting.payload[1]
            except asyncio.CancelledError:  # so says a server, other than ours, whose client has gone
                self.batcher.cancel(waiting)
                raise
            if served.failure is not None:
                raise ModelError(f"the model failed: {served.failure}")
        return served

    async def _encoded(self, program: Program, served: Served, request: InferRequest) -> Encoded:
        specs = program.signature.outputs
        head: dict[str, Any] = {"model_name": self.name, "model_version": served.version}
        if request.id:
            head["id"] = request.id
        if served.nonfinite:
            head["parameters"] = {"nonfinite_outputs": ",".join(served.nonfinite)}
        outputs = list(zip(specs, served.outputs, strict=True))
        if sum(array.nbytes for array in served.outputs) > LARGE_BYTES:
            return await asyncio.to_thread(encode_answer, head, outputs, request)
        return encode_answer(head, outputs, request)

    async def _other(self, path: str, method: str, exchange: Exchange) -> None:
        send = exchange.send
        parts = path.strip("/").split("/")
        if parts[:2] == ["v2", "models"] and len(parts) > 2:
            await self._of_model(parts[2:], method, exchange)
            return
        if parts[:2] == ["v2", "repository"]:
            await self._of_repository(parts[2:], method, send)
            return
        if method not in {"GET", "HEAD"}:
            raise RequestError(405, f"{method} {path}: legal is GET, or POST to {self._infer_path}")
        versions = self.batcher.versions
        if path == "/v2":
            document = {"name": "pyrometer", "version": __version__, "extensions": EXTENSIONS}
            await answers.send_json(send, document)
        elif path == "/v2/health/live":
            await _send_state(send, live=self.batcher.is_alive)
        elif path == "/v2/health/ready":
            await _send_state(send, ready=self.is_ready)
        elif path == "/metrics":
            await answers.send_bytes(send, await self._metrics(), content_type=CONTENT_TYPE.encode())
        elif path == "/openapi.json":
            await answers.send_json(send, pages.openapi(self.name, versions.get(versions.current).signature))
        elif path in {"/", "/docs"}:
            page = pages.page(self.name, versions.get(versions.current).signature).encode()
            await answers.send_bytes(send, page, content_type=b"text/html; charset=utf-8")
        else:
            raise RequestError(404, f"{path[:200]}: there is no such page; /docs lists all")

    @property
    def is_ready(self) -> bool:
        """Whether requests are accepted."""
        return self.batcher.is_alive and not self.batcher.is_draining

    async def _of_model(self, parts: list[str], method: str, exchange: Exchange) -> None:
        send = exchange.send
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
        if action == "infer" and method == "POST":
            await self._infer(exchange, version)
        elif action == "" and method == "GET":
            await answers.send_json(send, self._metadata(version))
        elif action == "ready" and method == "GET":
            await _send_state(send, ready=self.is_ready)
        elif action == "stats" and method == "GET":
            await answers.send_json(send, self._statistics())
        elif action == "prediction" and method == "GET":
            measured = self._statistics()
            predicted = None if self._predict is None else await asyncio.to_thread(self._predict)
            await answers.send_json(send, {**measured, "predicted": predicted})
        else:
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

    async def _of_repository(self, parts: list[str], method: str, send: Send) -> None:
        if parts == ["index"] and method == "POST":
            versions = self.batcher.versions
            index = [{"name": self.name, "version": name, "state": "READY"} for name in versions.names]
            await answers.send_json(send, index)
        elif parts == ["models", self.name, "load"] and method == "POST" and self._reload is not None:
            try:
                version = await self._reload()
            except PyrometerError as error:
                raise RequestError(409, f"the present version stays: {error}") from error
            await answers.send_json(send, {"name": self.name, "version": version})
        else:
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


def _urgency(request: InferRequest) -> tuple[float, int]:
    parameters = request.parameters
    if not parameters:
        return math.inf, USUAL
    timeout_us, priority = parameters.get("timeout", 0), parameters.get("priority", 0)
    if type(timeout_us) is not int or timeout_us < 0:
        raise InputError(f"timeout: got {timeout_us!r}; legal is a whole number of microseconds")
    if priority not in {0, *PRIORITIES}:
        raise InputError(f"priority: got {priority!r}; legal are 1 (first) to 3, and 0 for the usual")
    return (timeout_us / 1e6 if timeout_us else math.inf), (priority or USUAL)


async def _send_state(send: Send, **states: bool) -> None:
    status = 200 if all(states.values()) else 503
    await answers.send_json(send, states, status)
