"""The plan of a deployment that is prepared and not yet deployed."""

from __future__ import annotations

import numpy as np

from pyrometer.errors import InputError
from pyrometer.serving.deployment import Deployment
from pyrometer.serving.planning.arrivals import Shape, read_arrivals
from pyrometer.serving.planning.plan import Plan, plan
from pyrometer.serving.planning.trial import serve_itself

NUM_SHAPES = 256
SPREAD = 0.6
"""Of log-sizes where nobody says how sizes are distributed: as of texts, many short ones and few long ones."""


def plan_deployment(deployment: Deployment, text: str) -> Plan:
    """Replay requests through the policy of a deployment and others, as it serves some of them to itself.

    Raises:
        PyrometerError: the requests cannot be read, or it does not answer.
    """
    arrivals = read_arrivals(text, _shapes(deployment))
    course = arrivals.draw(np.random.default_rng(0), 0)
    if not course:
        raise InputError(
            f"--plan {text}: gives no request; name a higher rate or a longer span, such as poisson:200:5m"
        )
    model, tried = serve_itself(deployment, course)
    return plan(model, arrivals, deployment.policy, tried)


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
