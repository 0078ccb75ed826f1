"""Whether the numbers stay finite, and of what size they are."""

from __future__ import annotations

from pyrometer.errors import PyrometerError
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions
from pyrometer.numerics.watch import watch_numerics
from pyrometer.workload.workload import Workload

BUDGET_SHARE = 0.08
"""Share of the check's budget that watching the numbers may take on top."""

WATCHED_COST = 3
"""Times that a step takes while its numbers are looked at, on small operators."""

MOST_STEPS = 5


def observe(work: Workload, seen: Observed, options: ObserveOptions) -> Observed:
    """Watch the numbers of a few steps."""
    options.progress(0.0, "watching the numbers")
    step_s = seen.evidence.step_s or 0.0
    fitting = int(BUDGET_SHARE * options.budget_s / max(step_s * WATCHED_COST, 1e-9))
    try:
        return seen.having(numerics=watch_numerics(work, steps=max(1, min(MOST_STEPS, fitting))))
    except PyrometerError as error:
        return seen.having(f"the numbers could not be watched: {error}")
