"""A request for the model: read, let into the queue, and what comes of it written as an answer.

Nothing here knows how the bytes come or go: requests of every server take these steps, whether a task waits between them or not.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

from pyrometer.errors import InputError
from pyrometer.monitor.monitor import Monitor
from pyrometer.quantity import Bytes, Seconds
from pyrometer.serving.batching.policy import PRIORITIES, USUAL
from pyrometer.serving.batching.waiting import Waiting
from pyrometer.serving.http.answers import Response, refusal
from pyrometer.serving.http.tensors import (
    Decoded,
    InferRequest,
    decode_request,
    encode_answer,
    require_outputs,
)
from pyrometer.serving.running.batcher import Batcher, Bucket, OnOutcome, Outcome, RequestError
from pyrometer.serving.running.program import Program, Rows, Served
from pyrometer.tuning.shapes.axes import Sizes
from pyrometer.workload.failure import described

LARGE_BYTES: Bytes = 1 << 18
"""Bodies beyond are read and written in a thread, so that others go on meanwhile."""


class ModelError(RequestError):
    """The model failed on a request."""


class Asked:
    """A request that was read; once it is submitted it waits for its batch, or runs in it."""

    __slots__ = (
        "_decoded",
        "_endpoint",
        "_on_outcome",
        "_program",
        "_version",
        "_waiting",
        "_watched",
    )

    _waiting: Waiting

    def __init__(
        self, endpoint: InferEndpoint, program: Program, decoded: Decoded, version: str | None
    ) -> None:
        self._endpoint = endpoint
        self._program = program
        self._decoded = decoded
        self._version = version

    def submit(self, on_outcome: OnOutcome) -> None:
        """Let it wait for its batch.

        Args:
            on_outcome: is told in the loop what becomes of it, unless it is cancelled before it runs.

        Raises:
            RequestError: it is refused.
            InputError: no bucket holds it, or it asks for what there is not.
        """
        arrays, rows, request = decoded = self._decoded
        sizes, bucket = _shaped(self._program, decoded)
        timeout_s, priority = _urgency(request)
        self._on_outcome = on_outcome
        self._waiting = self._endpoint.batcher.submit(
            Rows(arrays, rows, sizes),
            Bucket(bucket, self._version),
            self._end,
            timeout_s=timeout_s,
            priority=priority,
        )
        watched = self._watched = self._endpoint.monitor.request("infer", trace_id=request.id)
        watched.units = rows
        watched.begin()
        if watched.is_sample:
            watched.shape = ",".join("x".join(map(str, array.shape)) for array in arrays)

    def cancel(self) -> None:
        """Its client has gone."""
        if self._endpoint.batcher.cancel(self._waiting):
            self._watched.end(asyncio.CancelledError())

    def _end(self, outcome: Outcome) -> None:
        if isinstance(outcome, RequestError):
            self._watched.end(outcome)
        elif outcome.failure is not None:
            outcome = ModelError(500, f"the model failed: {outcome.failure}")
            self._watched.end(outcome)
        else:
            self._watched.end()
        self._on_outcome(outcome)

    def response(self, outcome: Outcome) -> Response:
        """Write its answer."""
        if isinstance(outcome, RequestError):
            return refusal(outcome)
        try:
            return self._encoded(outcome)
        except Exception as error:  # noqa: BLE001 - takes no other answer of its batch along
            return refusal(RequestError(500, f"the answer cannot be written: {described(error)}"))

    def _encoded(self, served: Served) -> Response:
        request = self._decoded.request
        head: dict[str, Any] = {"model_name": self._endpoint.name, "model_version": served.version}
        if request.id:
            head["id"] = request.id
        if served.nonfinite:
            head["parameters"] = {"nonfinite_outputs": ",".join(served.nonfinite)}
        outputs = zip(self._program.signature.outputs, served.outputs, strict=True)
        answer = encode_answer(head, outputs, request)
        if answer.json_length is None:
            return Response(answer.body)
        more = ((b"inference-header-content-length", b"%d" % answer.json_length),)
        return Response(answer.body, 200, b"application/octet-stream", more)


class InferEndpoint:
    """Where requests for one model arrive.

    Args:
        name: of the model.
        batcher: runs it.
        monitor: watches every request.
    """

    def __init__(self, name: str, batcher: Batcher, monitor: Monitor) -> None:
        self.name = name
        self.batcher = batcher
        self.monitor = monitor

    def read(self, body: bytes | bytearray, json_length: int | None, version: str | None = None) -> Asked:
        """Read a request.

        Args:
            body: all of it.
            json_length: of its JSON, where bytes follow.
            version: that is asked for; None lets the server choose.

        Raises:
            InputError: it says what is wrong, and what is legal.
        """
        versions = self.batcher.versions
        program = versions.get(version or versions.current)
        signature = program.signature
        decoded = decode_request(body, json_length, signature.inputs)
        require_outputs(signature.outputs, decoded.request)
        return Asked(self, program, decoded, version)


def is_large(outcome: Outcome) -> bool:
    """Whether writing an answer takes so long that others should go on meanwhile."""
    return isinstance(outcome, Served) and sum([array.nbytes for array in outcome.outputs]) > LARGE_BYTES


def _shaped(program: Program, decoded: Decoded) -> tuple[Sizes, Sizes]:
    """The sizes of a request that vary, and the bucket that holds them."""
    if program.shaping is None:
        return (), ()
    names = [spec.name for spec in program.signature.inputs]
    sizes = program.shaping.sizes_of(names, [array.shape for array in decoded.arrays])
    return sizes, program.shaping.bucket(sizes)


def _urgency(request: InferRequest) -> tuple[Seconds, int]:
    parameters = request.parameters
    if not parameters:
        return math.inf, USUAL
    timeout_us, priority = parameters.get("timeout", 0), parameters.get("priority", 0)
    if type(timeout_us) is not int or timeout_us < 0:
        raise InputError(f"timeout: got {timeout_us!r}; legal is a whole number of microseconds")
    if type(priority) is not int or priority not in {0, *PRIORITIES}:
        raise InputError(f"priority: got {priority!r}; legal are 1 (first) to 3, and 0 for the usual")
    return (timeout_us / 1e6 if timeout_us else math.inf), (priority or USUAL)
