"""What a check says about torch.compile, where the program compiles something."""

from __future__ import annotations

import msgspec

from pyrometer.bench.measurement import Measurement
from pyrometer.compiler.build import build_report
from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.compiler.inspection.script import TraceFolder, report_script
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.report import CompileReport
from pyrometer.errors import PyrometerError
from pyrometer.quantity import Seconds
from pyrometer.workload.script.observed import ObservedScript
from pyrometer.workload.workload import Workload

BUDGET_SHARE = 0.5
"""Share of the check's budget that trying torch.compile may take on top, compiling itself not counted."""


def compiled_by_itself(log: CompileLog, measurement: Measurement | None) -> CompileReport | None:
    """What was compiled while the program was measured; `None` when nothing was."""
    if not log.compile_ids():
        return None
    first = measurement.first_call_s if measurement is not None else None
    steady = measurement.median_s if measurement is not None else None
    return in_short(build_report(log, first_call_s=first, steady_s=steady))


def compiled_by_script(observed: ObservedScript, folder: TraceFolder) -> CompileReport | None:
    """What a script compiled; `None` when it compiled nothing."""
    found = report_script(observed, folder)
    return in_short(found.report) if found.log.compile_ids() else None


def try_compile(work: Workload, *, budget_s: Seconds) -> tuple[CompileReport | None, list[str]]:
    """Compile a program that does not by itself, and compare; what prevents it is told."""
    try:
        return in_short(inspect_compile(work, budget_s=BUDGET_SHARE * budget_s)), []
    except PyrometerError as error:
        return None, [f"torch.compile could not be tried: {error}"]


def in_short(report: CompileReport) -> CompileReport:
    """Without the graphs themselves, which `pyrometer compile` shows."""
    return msgspec.structs.replace(report, graph_records=[])
