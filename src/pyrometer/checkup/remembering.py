"""What a check adds about memory: where the bytes go, and whether they stay."""

from __future__ import annotations

from pyrometer.errors import PyrometerError
from pyrometer.memory.profile import MemoryProfile
from pyrometer.memory.profiling import profile_memory
from pyrometer.quantity import Seconds
from pyrometer.workload.workload import Workload

BUDGET_SHARE = 0.3
"""Share of the check's budget that watching for leaks may take on top, and as much again for weighing advice."""

RECORDED_COST = 4
"""Times that a step takes while every operator is recorded, on small operators."""

MOST_STEPS = 60
FEWEST_STEPS = 24
"""Steps below which a leak cannot be told from warm-up: then none are watched."""


def profile_workload(
    work: Workload, *, step_s: Seconds, budget_s: Seconds
) -> tuple[MemoryProfile | None, list[str]]:
    """Profile a workload's memory; what prevents it is told, since the measurement stands without."""
    fitting = int(BUDGET_SHARE * budget_s / max(step_s * RECORDED_COST, 1e-9))
    leak_steps = min(MOST_STEPS, fitting) if fitting >= FEWEST_STEPS else 0
    try:
        limit_s = BUDGET_SHARE * budget_s
        return profile_memory(work, scaling=False, leak_steps=leak_steps, weigh_s=limit_s), []
    except PyrometerError as error:
        return None, [f"memory could not be profiled: {error}"]
