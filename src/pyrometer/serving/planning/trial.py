"""Some seconds of requests that a server gets before it is deployed, as it runs when it is: what is measured so holds for the others."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import numpy as np

from pyrometer.bench.fresh import run_fresh
from pyrometer.errors import UserProgramError
from pyrometer.quantity import Seconds
from pyrometer.serving.deployment import Deployment
from pyrometer.serving.planning.arrivals import Arrival
from pyrometer.serving.planning.client import PATIENCE_S, Sending, Sent, send
from pyrometer.serving.planning.interval import measured
from pyrometer.serving.planning.plan import Model, Trial, Tried
from pyrometer.serving.running.counting import MOST_RECENT
from pyrometer.serving.running.program import Program
from pyrometer.serving.starting.proving import example_rows
from pyrometer.tuning.shapes.axes import Sizes

NUM_STRETCHES = 5
UNSEEN = {"folder": "", "processes": "", "redis": "", "otlp": "", "port": 0, "address": "127.0.0.1"}
"""Settings of a monitor that tells nobody, as of requests that nobody has sent."""


def serve_itself(deployment: Deployment, course: Sequence[Arrival]) -> tuple[Model, Tried]:
    """Serve some of a course of requests, and say what the server knows of itself afterwards.

    Raises:
        KeyboardInterrupt: the server was asked to end meanwhile.
        PyrometerError: it does not answer.
    """
    chosen = stretches(course, deployment.settings.calibrate_s, MOST_RECENT - 1)
    began_s = _sent(deployment, _order(deployment, chosen)).began_s
    latencies_s = [one.latency_s for one in sorted(deployment.counting.recent) if one.at_s >= began_s]
    if not latencies_s:
        raise UserProgramError(
            f"{deployment.name}: answered none of {len(chosen)} requests; see what its logs say"
        )
    trial = Trial(
        num_requests=len(latencies_s),
        span_s=chosen[-1].at_s,
        p50_s=measured(latencies_s, 0.5),
        p99_s=measured(latencies_s, 0.99),
    )
    return deployment.model(began_s), Tried(chosen, trial)


def stretches(course: Sequence[Arrival], budget_s: Seconds, most: int) -> list[Arrival]:
    """All of a short course; of a longer one some stretches, from the calmest to the busiest, one after the other.

    Args:
        course: of requests.
        budget_s: for all of them.
        most: requests.
    """
    first_s = course[0].at_s
    if course[-1].at_s - first_s <= budget_s and len(course) <= most:
        return [one._replace(at_s=one.at_s - first_s) for one in course]
    length_s = budget_s / NUM_STRETCHES
    found: dict[int, list[Arrival]] = {}
    for one in course:
        found.setdefault(math.floor((one.at_s - first_s) / length_s), []).append(one)
    by_size = sorted(found, key=lambda number: len(found[number]))
    places = np.linspace(0, len(by_size) - 1, min(NUM_STRETCHES, len(by_size)))
    chosen: list[Arrival] = []
    begin_s = 0.0
    for number in sorted(by_size[round(place)] for place in places):
        part = found[number][: most // NUM_STRETCHES]
        whole = len(part) == len(found[number])
        chosen += [one._replace(at_s=begin_s + one.at_s - first_s - number * length_s) for one in part]
        begin_s = begin_s + length_s if whole else chosen[-1].at_s
    return chosen


def _sent(deployment: Deployment, order: Sending) -> Sent:
    from pyrometer.serving.http.server import run_loop

    async def serve() -> Sent | None:
        asking: asyncio.Future[Sent] | None = None

        def begin() -> None:
            nonlocal asking
            limit_s = order.times_s[-1] + 10 * PATIENCE_S
            asking = asyncio.ensure_future(asyncio.to_thread(run_fresh, send, order, timeout_s=limit_s))
            asking.add_done_callback(lambda _: deployment.stop())

        await deployment.run(begin)
        return asking.result() if asking is not None and asking.done() else None

    sent = run_loop(serve)
    if sent is None:
        raise KeyboardInterrupt
    return sent


def _order(deployment: Deployment, course: Sequence[Arrival]) -> Sending:
    """The requests of a course, with the example inputs of the target."""
    from pyrometer.serving.http.tensors import encode_request

    program = deployment.first.program
    token = b"" if deployment.token is None else b"authorization: Bearer %b\r\n" % deployment.token.encode()
    kinds: dict[tuple[int, Sizes], int] = {}
    requests: list[bytes] = []
    places = []
    for one in course:
        kind = min(one.rows, deployment.first.most_rows), _sizes(program, one)
        if kind not in kinds:
            kinds[kind] = len(requests)
            rows = example_rows(program, *kind)
            body, length = encode_request(list(zip(program.signature.inputs, rows.arrays, strict=True)))
            head = b"POST /v2/models/%b/infer HTTP/1.1\r\nhost: localhost\r\n" % deployment.name.encode()
            head += token if length is None else token + b"inference-header-content-length: %d\r\n" % length
            requests.append(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        places.append(kinds[kind])
    return Sending(
        url=deployment.url,
        requests=requests,
        times_s=[one.at_s for one in course],
        places=places,
    )


def _sizes(program: Program, one: Arrival) -> Sizes:
    if program.shaping is None:
        return ()
    return program.shaping.sizes_within([spec.name for spec in program.signature.inputs], one.shapes)
