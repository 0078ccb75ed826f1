"""The waist: everything that was observed of one program, each part null where it was not observed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, get_args

from pyrometer.bench.ceiling import Ceiling
from pyrometer.bench.measurement import Measurement
from pyrometer.compiler.report import CompileReport
from pyrometer.dataflow.report import DataflowReport
from pyrometer.evidence.kinds import RecordKind
from pyrometer.evidence.launch_outcome import LaunchOutcome
from pyrometer.evidence.script_outcome import ScriptOutcome
from pyrometer.hardware.record import Environment
from pyrometer.host.profile import HostProfile
from pyrometer.loading.report import LoaderReport
from pyrometer.memory.profile import MemoryProfile
from pyrometer.memory.snapshots.report import SnapshotReport
from pyrometer.numerics.report import NumericsReport
from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc
from pyrometer.trace.capture.record import Capture
from pyrometer.trace.jobs.job import Job
from pyrometer.trace.records.rank import RankReport, TraceVerdict
from pyrometer.workload.program.record import Program

VERSION = 1
"""Of the record; it grows when a field is removed or changes its meaning."""


class Evidence(Record, frozen=True, kw_only=True):
    """Everything that was observed of one program."""

    version: Annotated[int, doc("of this record")] = VERSION
    target: Annotated[str, doc("as it was typed")]
    environment: Annotated[Environment | None, doc("of what ran here; files do not say all of theirs")] = None
    measurement: Annotated[Measurement | None, doc("null when not a single step was seen")] = None
    script: Annotated[ScriptOutcome | None, doc("for scripts under observation")] = None
    trace: Annotated[RankReport | None, doc("where the step goes, of the rank that is looked at")] = None
    trace_verdict: Annotated[TraceVerdict | None, doc("what bounds it")] = None
    capture: Annotated[Capture | None, doc("how the trace was taken, and at what cost; null for files")] = (
        None
    )
    host: Annotated[HostProfile | None, doc("where the host's time goes; null where it was not sampled")] = (
        None
    )
    ceilings: Annotated[list[Ceiling] | None, doc("steps with places cut out; null where none was tried")] = (
        None
    )
    ranks: Annotated[list[RankReport], doc("all of them, where there are several; `trace` is one")] = []
    job: Annotated[Job | None, doc("the ranks beside each other")] = None
    launch: Annotated[LaunchOutcome | None, doc("how they ran; null for traces alone")] = None
    compiled: Annotated[
        CompileReport | None, doc("what torch.compile did; null where nothing was compiled")
    ] = None
    memory: Annotated[
        MemoryProfile | None, doc("where the bytes go; null where memory could not be profiled")
    ] = None
    snapshot: Annotated[SnapshotReport | None, doc("what the allocator of a device held")] = None
    loading: Annotated[LoaderReport | None, doc("how the data arrives; null but for training")] = None
    program: Annotated[Program | None, doc("how the program is set up; null for scripts")] = None
    numerics: Annotated[
        NumericsReport | None, doc("what the numbers did; null where they could not be watched")
    ] = None
    dataflow: Annotated[
        DataflowReport | None, doc("what reads what, and what nobody reads; null where it was not recorded")
    ] = None
    notes: Annotated[list[str], doc("what could not be observed, and why")] = []

    def has(self, kind: str) -> bool:
        """Whether there is evidence of this kind."""
        return getattr(self, kind) is not None

    def kinds(self) -> Iterator[str]:
        """The kinds of which there is evidence."""
        return filter(self.has, get_args(RecordKind))

    @property
    def step_s(self) -> Seconds | None:
        """Seconds of one step: as measured, else the mean of the traced steps."""
        if self.measurement is not None and self.measurement.complete and self.measurement.median_s > 0:
            return self.measurement.median_s
        if self.trace is None or not self.trace.steps:
            return None
        steps = self.trace.steps
        return sum(step.end_ns - step.start_ns for step in steps) * 1e-9 / len(steps)

    @property
    def num_traced_steps(self) -> int:
        """Steps in the trace, at least one."""
        return max(len(self.trace.steps), 1) if self.trace is not None else 1
