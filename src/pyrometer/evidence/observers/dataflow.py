"""What reads what, and what nobody reads."""

from __future__ import annotations

from pyrometer.dataflow.build import build_report
from pyrometer.dataflow.record import record_dataflow
from pyrometer.errors import PyrometerError
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions
from pyrometer.workload.workload import Workload

BUDGET_SHARE = 0.2
"""Share of the check's budget that recording may take on top; two steps are always recorded."""

MOST_STEPS = 6


def observe(work: Workload, seen: Observed, options: ObserveOptions) -> Observed:
    """Record the operators of a few steps."""
    options.progress(1.0, "following values")
    if seen.evidence.compiled is not None and not options.compiling:
        return seen  # compiled code has no operators that could be followed
    try:
        graph = record_dataflow(work, steps=MOST_STEPS, budget_s=BUDGET_SHARE * options.budget_s)
    except PyrometerError as error:
        return seen.having(f"what reads what was not recorded: {error}")
    return seen.having(dataflow=build_report(graph))
