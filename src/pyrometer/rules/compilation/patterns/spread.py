"""What happens once, as a cost per step; and what entering one more graph costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.advice import Cost
from pyrometer.quantity import Seconds, counted, format_seconds
from pyrometer.rules.rule import Case

if TYPE_CHECKING:
    from pyrometer.compiler.report import CompileReport

RESOURCE = "compile"
"""What everything that takes compile time counts."""


def step_seconds(case: Case, report: CompileReport) -> Seconds | None:
    """A steady step: as the report timed it beside eager, else as it was measured."""
    return report.cost.steady_s or case.step_s


def once_in_a_run(seconds: Seconds, case: Case, report: CompileReport) -> Cost | None:
    """Time that is spent once, over the steps of the run that the report assumes; `None` where it assumes none."""
    if report.runtime is None or seconds <= 0:
        return None
    steps = report.runtime.run_steps
    step_s = step_seconds(case, report)
    per_step_s = seconds / steps
    return Cost(
        seconds_per_step=per_step_s,
        share=None if step_s is None else per_step_s / (step_s + per_step_s),
        method=f"{format_seconds(seconds)} of compiling, once, over a run of {counted(steps, 'step')}",
    )


def one_more_graph(sites: int, case: Case, report: CompileReport) -> Cost | None:
    """What it costs to enter so many graphs more in each step; `None` where no steady step was profiled.

    A lower bound: what is not fused across the break comes on top, and nobody measured it.
    """
    runtime = report.runtime
    if runtime is None or not runtime.dispatch_s or not runtime.profiled_step_s:
        return None
    calls = sum(graph.calls_per_step for graph in runtime.graphs)
    if not calls:
        return None
    share = min(1.0, sites * runtime.dispatch_s / calls / runtime.profiled_step_s)
    step_s = step_seconds(case, report)
    return Cost(
        seconds_per_step=None if step_s is None else share * step_s,
        share=share,
        method="looking for the graph behind the break and entering it, the mean over the graphs of profiled steps; what is not "
        "fused across the break comes on top",
    )
