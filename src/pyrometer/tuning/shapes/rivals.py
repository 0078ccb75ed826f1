"""What buckets have to beat: the model as it is, one graph for any size, and padding to one size."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyrometer.quantity import Seconds, format_seconds, significant
from pyrometer.tuning.shapes.axes import CallArguments
from pyrometer.tuning.shapes.passes import timed
from pyrometer.tuning.shapes.planning import StepCost, measured_cost
from pyrometer.tuning.shapes.record import WayCost
from pyrometer.workload.failure import described

Run = Callable[..., Any]
"""Runs a call: takes the arguments of the model."""

SIMPLEST = ("eager", "dynamic", "mark_dynamic", "one_size", "buckets", "static")
"""Ways by how little they ask for."""
ALIKE = 1.03
"""A simpler way is preferred while its cost is within this of the best."""
NUM_COSTED = 6
"""Sizes at which steps are timed, at equal steps of the sample's sizes."""
FEWEST_ROUNDS, MOST_ROUNDS = 3, 15
ROUNDS_S: Seconds = 1.0
"""Time after which no further round is begun."""


class WeightedCall(NamedTuple):
    """A call that stands for so many of the sample."""

    call: CallArguments
    weight: float


def fastest(run: Run, calls: Sequence[CallArguments]) -> list[Seconds]:
    """The fastest of a few runs of each call, in turn, so that no call has the machine's worst moment alone.

    Raises:
        Exception: whatever the run raises.
    """
    return _in_turn({"": run}, calls)[""]


def cost_by_time(
    run: Run, sized: Callable[[int], CallArguments], seen: Iterable[int]
) -> tuple[StepCost, Seconds]:
    """What steps cost by size, from a few runs at some sizes of a sample, and what the first of all runs took beyond that.

    Raises:
        Exception: whatever the run raises.
    """
    sizes = sorted(set(seen))
    some = sorted({sizes[place * (len(sizes) - 1) // (NUM_COSTED - 1)] for place in range(NUM_COSTED)})
    calls = [sized(size) for size in some]
    _, first_s = timed(run, calls[0])
    for args, kwargs in calls[1:]:
        run(*args, **kwargs)
    steps = fastest(run, calls)
    return measured_cost(dict(zip(some, steps, strict=True))), max(first_s - steps[0], 0.0)


def compare_ways(ways: Mapping[str, Run], calls: Sequence[WeightedCall]) -> list[WayCost]:
    """The mean step of each way over some calls, from the fastest of a few runs in turn; a way that fails says so."""
    failures: dict[str, str] = {}
    for name, run in ways.items():
        try:
            for weighted in calls:
                run(*weighted.call[0], **weighted.call[1])
        except Exception as error:  # noqa: BLE001 - whatever the compiler or the model raises
            failures[name] = described(error)
    ready = {name: run for name, run in ways.items() if name not in failures}
    times = _in_turn(ready, [weighted.call for weighted in calls])
    weights = [weighted.weight for weighted in calls]
    steps = {name: float(np.average(taken, weights=weights)) for name, taken in times.items()}
    return [WayCost(name=name, step_s=steps.get(name), failure=failures.get(name)) for name in ways]


def best_way(costs: Mapping[str, float]) -> str:
    """The cheapest; among those that cost nearly the same the simplest.

    >>> best_way({"buckets": 1.0, "dynamic": 1.02, "eager": 1.2})
    'dynamic'
    """
    least = min(costs.values())
    return min((name for name, cost in costs.items() if cost <= least * ALIKE), key=SIMPLEST.index)


def losing_note(ways: Iterable[WayCost]) -> str | None:
    """What to do where buckets are not the fastest way; `None` where they are.

    >>> losing_note([WayCost(name="buckets", step_s=4e-3), WayCost(name="dynamic", step_s=3.1e-3)])
    'buckets lose here: 4.00 ms a call against 3.10 ms (1.29×): use torch.compile(model, dynamic=True) instead'
    """
    known = list(ways)
    steps = {way.name: way.step_s for way in known if way.step_s is not None}
    if "buckets" not in steps:
        failure = next((way.failure for way in known if way.name == "buckets"), None)
        return None if failure is None else f"buckets could not be compared with other ways: {failure}"
    best = best_way(steps)
    if best == "buckets":
        return None
    return (
        f"buckets lose here: {format_seconds(steps['buckets'])} a call against {format_seconds(steps[best])} "
        f"({significant(steps['buckets'] / steps[best])}×): use {INSTEAD[best]} instead"
    )


INSTEAD = {
    "eager": "the model uncompiled",
    "dynamic": "torch.compile(model, dynamic=True)",
    "one_size": "max_graphs=1, which pads to one size,",
}


def _in_turn(ways: Mapping[str, Run], calls: Sequence[CallArguments]) -> dict[str, list[Seconds]]:
    times = {name: [float("inf")] * len(calls) for name in ways}
    start = time.monotonic()
    for number in range(MOST_ROUNDS):
        if number >= FEWEST_ROUNDS and time.monotonic() - start > ROUNDS_S:
            break
        for place, call in enumerate(calls):
            for name, run in ways.items():
                _, seconds = timed(run, call)
                times[name][place] = min(times[name][place], max(seconds, 1e-9))
    return times
