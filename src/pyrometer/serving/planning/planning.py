"""The plan of a deployment that is prepared and does not listen."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyrometer.quantity import Seconds
from pyrometer.serving.batching.service_times import Pace, Rest, ServiceTimes
from pyrometer.serving.deployment import Deployment
from pyrometer.serving.planning.arrivals import Shape, read_arrivals
from pyrometer.serving.planning.plan import Plan, plan
from pyrometer.serving.running.program import Program
from pyrometer.serving.running.shaping import told
from pyrometer.serving.running.worker import Done, Worker
from pyrometer.serving.starting.proving import example_rows

HANDOFFS = 2000
IDLE_S = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016)
"""Pauses after which a rested model is timed."""
NUM_RESTED = 32
NUM_SHAPES = 256
SPREAD = 0.6
"""Of log-sizes where nobody says how sizes are distributed: as of texts, many short ones and few long ones."""


def plan_deployment(deployment: Deployment, text: str) -> Plan:
    """Replay requests through the policy of a deployment and others, with the service times of its model.

    Raises:
        InputError: the requests cannot be read.
    """
    arrivals = read_arrivals(text, _shapes(deployment))
    program = deployment.first.program
    taken = handoffs(program.worker)
    usual_s = statistics.median(taken)
    ranks = np.random.default_rng(0).random(len(taken))
    late = [Pace(max(one - usual_s, 0.0), float(rank)) for one, rank in zip(taken, ranks, strict=True)]
    rests = rested(program, usual_s, ServiceTimes.of(deployment.first.points))
    return plan(deployment.model(usual_s)._replace(course=late, rests=rests), arrivals, deployment.policy)


def handoffs(worker: Worker) -> list[Seconds]:
    """How long it takes the loop of a server to pass a batch to the thread of the model, and to hear that it has run."""
    return _timed(worker, lambda: None, [0.0] * HANDOFFS)


def rested(program: Program, handoff_s: Seconds, times: ServiceTimes) -> list[Rest]:
    """What the smallest batch takes longer from the loop of a server after the model had nothing to do."""
    bucket = program.shaping.edges()[-1] if program.shaping is not None else ()
    rows = program.row_edges[0] if program.row_edges else 1
    batch = [example_rows(program, rows if program.is_fixed else 1, bucket)]
    batch *= 1 if program.is_fixed else rows
    usual_s = times.expected(told(bucket), rows) + handoff_s
    found = []
    for idle_s in IDLE_S:
        taken = _timed(program.worker, lambda: program.run(batch, bucket), [idle_s] * NUM_RESTED)
        found.append(Rest(idle_s, [max(one - usual_s, 0.0) for one in taken]))
    return found


def _timed(worker: Worker, work: Callable[[], Any], idle_s: Sequence[Seconds]) -> list[Seconds]:
    """What each call takes after a pause, asked for by the loop of a server."""
    from pyrometer.serving.http.server import run_loop

    taken: list[Seconds] = []

    async def measure() -> None:
        loop = asyncio.get_running_loop()
        for pause_s in idle_s:
            if pause_s:
                await asyncio.sleep(pause_s)
            done: asyncio.Future[None] = loop.create_future()

            def on_done(_: Done, done: asyncio.Future[None] = done) -> None:
                loop.call_soon_threadsafe(done.set_result, None)

            started_s = time.perf_counter()
            loop.call_soon(worker.submit, work, on_done)
            await done
            taken.append(time.perf_counter() - started_s)

    run_loop(measure)
    return taken


def _shapes(deployment: Deployment) -> list[tuple[Shape, ...]]:
    """Requests of one row; sizes that vary are log-normal around a third of the largest."""
    program = deployment.first.program
    if program.shaping is None:
        return []
    random = np.random.default_rng(0)
    names = [spec.name for spec in program.signature.inputs]
    largest = np.array(program.shaping.edges()[0])
    found = []
    for _ in range(NUM_SHAPES):
        sizes = np.clip(largest / 3 * np.exp(random.normal(0.0, SPREAD)), 1, largest).astype(int)
        found.append(program.shaping.shapes_of(names, tuple(int(size) for size in sizes), 1))
    return found
