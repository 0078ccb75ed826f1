"""What one `pyrometer check` learned about one target: measured, observed and explained."""

from __future__ import annotations

from typing import Annotated

from pyrometer.bench.measurement import Measurement, MemoryUse, PhaseTime
from pyrometer.compiler.report import CompileReport
from pyrometer.evidence.script_outcome import ScriptOutcome
from pyrometer.hardware.environment import Environment
from pyrometer.loading.report import LoaderReport
from pyrometer.memory.profile import MemoryProfile
from pyrometer.numerics.report import NumericsReport
from pyrometer.record import Record, doc
from pyrometer.rules.diagnosis import ReadingStep
from pyrometer.rules.finding import Finding, Suppressed
from pyrometer.trace.capture.record import Capture
from pyrometer.trace.reporting.rank_report import RankReport
from pyrometer.trace.reporting.verdict import TraceVerdict
from pyrometer.workload.program.record import Program


class Checkup(Record, frozen=True, kw_only=True):
    """Everything that `check` found out about one target."""

    target: str
    measurement: Annotated[Measurement | None, doc("null when not a single step was seen")]
    phases: list[PhaseTime]
    memory: MemoryUse | None
    environment: Environment
    findings: Annotated[list[Finding], doc("what the rules found, the most rewarding first")] = []
    reading: Annotated[list[ReadingStep], doc("the profile, read in the order in which an expert does")] = []
    suppressed: Annotated[list[Suppressed], doc("findings that the user chose not to see")] = []
    script: Annotated[ScriptOutcome | None, doc("for scripts under observation")] = None
    trace: Annotated[RankReport | None, doc("where the step goes; null when no step could be traced")] = None
    trace_verdict: Annotated[TraceVerdict | None, doc("what bounds it")] = None
    capture: Annotated[Capture | None, doc("how the trace was taken, and at what cost")] = None
    compiled: Annotated[
        CompileReport | None, doc("what torch.compile did; null where nothing was compiled")
    ] = None
    memory_profile: Annotated[
        MemoryProfile | None, doc("where the bytes go; null where memory could not be profiled")
    ] = None
    loading: Annotated[LoaderReport | None, doc("how the data arrives; null but for training")] = None
    program: Annotated[Program | None, doc("how the program is set up; null for scripts")] = None
    numerics: Annotated[
        NumericsReport | None, doc("what the numbers did; null where they could not be watched")
    ] = None
    notes: Annotated[list[str], doc("what could not be observed, and why")] = []
