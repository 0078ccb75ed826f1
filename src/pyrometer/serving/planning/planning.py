"""The plan of a deployment that is prepared and does not listen."""

from __future__ import annotations

import asyncio
import statistics
import time

import numpy as np

from pyrometer.quantity import Seconds
from pyrometer.serving.batching.service_times import Pace
from pyrometer.serving.deployment import Deployment
from pyrometer.serving.planning.arrivals import Shape, read_arrivals
from pyrometer.serving.planning.plan import Plan, plan
from pyrometer.serving.running.worker import Done, Worker

HANDOFFS = 2000
NUM_SHAPES = 256
SPREAD = 0.6
"""Of log-sizes where nobody says how sizes are distributed: as of texts, many short ones and few long ones."""


def plan_deployment(deployment: Deployment, text: str) -> Plan:
    """Replay requests through the policy of a deployment and others, with the service times of its model.

    Raises:
        InputError: the requests cannot be read.
    """
    arrivals = read_arrivals(text, _shapes(deployment))
    taken = handoffs(deployment.first.program.worker)
    usual_s = statistics.median(taken)
    ranks = np.random.default_rng(0).random(len(taken))
    late = [Pace(max(one - usual_s, 0.0), float(rank)) for one, rank in zip(taken, ranks, strict=True)]
    return plan(deployment.model(usual_s)._replace(course=late), arrivals, deployment.policy)


def handoffs(worker: Worker) -> list[Seconds]:
    """How long it takes the loop of a server to pass a batch to the thread of the model, and to hear that it has run."""
    from pyrometer.serving.http.server import run_loop

    taken: list[Seconds] = []

    async def measure() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(HANDOFFS):
            done: asyncio.Future[None] = loop.create_future()

            def on_done(_: Done, done: asyncio.Future[None] = done) -> None:
                loop.call_soon_threadsafe(done.set_result, None)

            started_s = time.perf_counter()
            loop.call_soon(worker.submit, lambda: None, on_done)
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
