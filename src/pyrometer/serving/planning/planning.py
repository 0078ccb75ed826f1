"""The plan of a deployment that is prepared and does not listen."""

from __future__ import annotations

import statistics
import threading
import time

import numpy as np

from pyrometer.quantity import Seconds
from pyrometer.serving.deployment import Deployment
from pyrometer.serving.planning.arrivals import Shape, read_arrivals
from pyrometer.serving.planning.plan import Plan, plan
from pyrometer.serving.running.worker import Worker

HANDOFFS = 200
NUM_SHAPES = 256
SPREAD = 0.6
"""Of log-sizes where nobody says how sizes are distributed: as of texts, many short ones and few long ones."""


def plan_deployment(deployment: Deployment, text: str) -> Plan:
    """Replay requests through the policy of a deployment and others, with the service times of its model.

    Raises:
        InputError: the requests cannot be read.
    """
    arrivals = read_arrivals(text, _shapes(deployment))
    worker = deployment.first.program.worker
    return plan(deployment.model(handoff(worker)), arrivals, deployment.policy)


def handoff(worker: Worker) -> Seconds:
    """How long it takes to pass a batch to the thread of the model, and back."""
    taken = []
    for _ in range(HANDOFFS):
        done = threading.Event()
        started_s = time.perf_counter()
        worker.submit(lambda: None, lambda _: done.set())  # noqa: B023 - waited for before the next
        done.wait()
        taken.append(time.perf_counter() - started_s)
    return statistics.median(taken)


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
