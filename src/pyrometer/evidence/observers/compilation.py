"""What torch.compile does with the program: by itself, or tried."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from pyrometer.bench.measurement import Measurement
from pyrometer.compiler.build import build_report
from pyrometer.compiler.inspection.inspect import inspect_compile
from pyrometer.compiler.inspection.script import TraceFolder, report_script
from pyrometer.compiler.log import CompileLog
from pyrometer.compiler.report import CompileReport
from pyrometer.errors import PyrometerError
from pyrometer.evidence.observed import Observed
from pyrometer.evidence.options import ObserveOptions
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
    script = report_script(observed, folder)
    return in_short(script.report) if script.log.compile_ids() else None


def observe(work: Workload, seen: Observed, options: ObserveOptions) -> Observed:
    """Where it is asked for, compile a program that does not by itself, and compare."""
    if not options.compiling or seen.evidence.compiled is not None:
        return seen
    options.progress(0.0, "trying torch.compile")
    try:
        report = inspect_compile(work, budget_s=BUDGET_SHARE * options.budget_s)
    except PyrometerError as error:
        return seen.having(f"torch.compile could not be tried: {error}")
    return replace(seen.having(compiled=in_short(report)), interrupted=report.interrupted)


def in_short(report: CompileReport) -> CompileReport:
    """Without the graphs themselves, which `pyrometer compile` shows."""
    return msgspec.structs.replace(report, graph_records=[])
