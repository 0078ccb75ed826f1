"""What a step takes without its most expensive places, by experiment."""

from __future__ import annotations

from pyrometer.bench.cutting.measuring import measure_ceilings
from pyrometer.errors import PyrometerError
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions
from pyrometer.quantity import Seconds
from pyrometer.workload.workload import Workload

BUDGET_SHARE = 0.2
"""Share of the check's budget that cutting places out may take on top."""

MOST_S = 1.0
LARGE_BUDGET_SHARE = 0.2
"""Of a budget that someone asked for because the steps are long: then more than two seconds."""


def observe(work: Workload, seen: Observed, options: ObserveOptions) -> Observed:
    """Cut the most expensive places out, one at a time; where something is compiled, the loader alone."""
    step_s = seen.evidence.step_s
    if step_s is None:
        return seen
    options.progress(0.0, "cutting out the most expensive places")
    compiled = seen.evidence.compiled
    eager = compiled is None or not compiled.as_written
    try:
        measured = measure_ceilings(
            work, step_s=step_s, budget_s=allowed_s(options.budget_s), functions=eager
        )
    except PyrometerError as error:
        return seen.having(f"no place could be cut out of the step: {error}")
    return seen.having(*measured.notes, ceilings=measured.ceilings)


def allowed_s(budget_s: Seconds) -> Seconds:
    """How long all places may take together.

    >>> allowed_s(2), allowed_s(5), allowed_s(30)
    (0.4, 1.0, 6.0)
    """
    return max(min(MOST_S, BUDGET_SHARE * budget_s), LARGE_BUDGET_SHARE * budget_s)
