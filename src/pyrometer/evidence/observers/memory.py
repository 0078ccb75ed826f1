"""Where the bytes go, and whether they stay."""

from __future__ import annotations

import math
from dataclasses import replace

from pyrometer.bench.measurement import Measurement, MemoryUse
from pyrometer.bench.reservations import GROWTH_BYTES
from pyrometer.errors import PyrometerError
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions
from pyrometer.memory.profiling import profile_memory
from pyrometer.quantity import Seconds, format_seconds
from pyrometer.workload.workload import Workload

BUDGET_SHARE = 0.15
"""Share of the check's budget that watching for leaks may take on top, and as much again for weighing advice."""

REHEARSED_SHARE = 1 / 3
"""The same for one run of the step without data."""

RECORDED_COST = 4
"""Times that a step takes while every operator is recorded, on small operators."""

PREDICTED_BYTES = 64 * 2**20
"""Peak of an inference below which no advice about memory is weighed: any machine has that much."""

MOST_STEPS = 60
FEWEST_STEPS = 24
"""Steps below which a leak cannot be told from warm-up: then none are watched."""


GROWING_SHARE = 1.0
"""Share of the budget that watching may take where the measurement saw memory grow; so much as to find out why."""


def observe(work: Workload, seen: Observed, options: ObserveOptions) -> Observed:
    """Profile the memory of a few steps, and watch for leaks where the budget allows it."""
    options.progress(0.0, "profiling memory")
    leak_steps, notes = leak_steps_of(seen.evidence.measurement, options.budget_s)
    limit_s = BUDGET_SHARE * options.budget_s
    try:
        profile = profile_memory(
            work,
            predict_from=PREDICTED_BYTES,
            predict_s=REHEARSED_SHARE * options.budget_s,
            scaling=False,
            leak_steps=leak_steps,
            weigh_s=limit_s,
        )
    except PyrometerError as error:
        return seen.having(f"memory could not be profiled: {error}", *notes)
    return replace(seen.having(*notes, memory=profile), interrupted=profile.interrupted)


def leak_steps_of(measurement: Measurement | None, budget_s: Seconds) -> tuple[int, list[str]]:
    """How many steps to watch for leaks; where memory grows and too few of them fit, a note says so."""
    if measurement is None:
        return 0, []
    recorded_s = max(measurement.median_s * RECORDED_COST, 1e-9)
    fitting = int(BUDGET_SHARE * budget_s / recorded_s)
    if fitting >= FEWEST_STEPS:
        return min(MOST_STEPS, fitting), []
    if not grows(measurement.memory):
        return 0, []
    needed_s = FEWEST_STEPS * recorded_s
    if needed_s <= GROWING_SHARE * budget_s:
        return FEWEST_STEPS, []
    note = (
        f"memory grew while measuring, but why was not looked for: {FEWEST_STEPS} watched steps, each about {RECORDED_COST} times "
        f"as long while it is recorded, would take {format_seconds(needed_s)}; allow them with --budget {_enough(needed_s, measurement)}s"
    )
    return 0, [note]


def _enough(needed_s: Seconds, measurement: Measurement) -> int:
    """Seconds that are enough for the watched steps, and for what the measurement itself asks for."""
    return math.ceil(max([needed_s, *(caveat.needed_s or 0.0 for caveat in measurement.warnings)]))


def grows(memory: MemoryUse | None) -> bool:
    """Whether the process's memory grew steadily, and by more than a warm-up leaves behind."""
    return memory is not None and (memory.growth_bytes_per_step or 0.0) >= GROWTH_BYTES
