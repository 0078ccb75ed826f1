"""What reads what, and what nobody reads."""

from __future__ import annotations

from pathlib import Path

from pyrometer.dataflow.build import build_report
from pyrometer.dataflow.record import record_dataflow
from pyrometer.dataflow.report import DataflowReport
from pyrometer.errors import PyrometerError
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions
from pyrometer.record import from_json
from pyrometer.workload.script.observed import FollowRequest
from pyrometer.workload.workload import Workload

IN_SCRIPTS = ("pyrometer.dataflow.script", "follow_values")
"""Module and function of what records inside of a script."""

BUDGET_SHARE = 0.1
"""Share of the check's budget that recording may take on top; three steps are always recorded."""

MOST_STEPS = 6


def observe(work: Workload, seen: Observed, options: ObserveOptions) -> Observed:
    """Record the operators of a few steps."""
    options.progress(0.0, "following values")
    if seen.evidence.compiled is not None and not options.compiling:
        return seen  # compiled code has no operators that could be followed
    try:
        graph = record_dataflow(work, steps=MOST_STEPS, budget_s=BUDGET_SHARE * options.budget_s)
    except PyrometerError as error:
        return seen.having(f"what reads what was not recorded: {error}")
    return seen.having(dataflow=build_report(graph))


def request_in_script(file: Path, program: Path) -> FollowRequest:
    """What is asked of a script under observation, whose report and set-up are to be written to these files."""
    module, name = IN_SCRIPTS
    settings = {"path": str(file), "program": str(program)}
    return FollowRequest(module=module, name=name, settings=settings, failure=f"{file}.failure")


def dataflow_of_script(file: Path) -> DataflowReport | None:
    """What was recorded in a script; `None` where it was not."""
    return from_json(DataflowReport, file.read_bytes()) if file.exists() else None
