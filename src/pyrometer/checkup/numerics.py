"""What a check adds about numbers: whether they stay finite, and of what size they are."""

from __future__ import annotations

from pyrometer.errors import PyrometerError
from pyrometer.numerics.report import NumericsReport
from pyrometer.numerics.watch import watch_numerics
from pyrometer.quantity import Seconds
from pyrometer.workload.workload import Workload

BUDGET_SHARE = 0.2
"""Share of the check's budget that watching the numbers may take on top."""

WATCHED_COST = 3
"""Times that a step takes while its numbers are looked at, on small operators."""

MOST_STEPS = 5


def watch_workload(
    work: Workload, *, step_s: Seconds, budget_s: Seconds
) -> tuple[NumericsReport | None, list[str]]:
    """Watch the numbers of a few steps; what prevents it is told, since the measurement stands without."""
    steps = max(1, min(MOST_STEPS, int(BUDGET_SHARE * budget_s / max(step_s * WATCHED_COST, 1e-9))))
    try:
        return watch_numerics(work, steps=steps), []
    except PyrometerError as error:
        return None, [f"the numbers could not be watched: {error}"]
