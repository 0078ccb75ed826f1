"""What `--json` prints: one document per verb, versioned; its JSON Schema is generated from these types.

History of `schema_version`: 1 is the first. It grows when a key is removed or changes its meaning; added keys
leave it alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pyrometer.bench.calibration import Calibration
from pyrometer.bench.cold import ColdStarts
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.matrix.matrix import Matrix
from pyrometer.bench.measurement import Measurement, MemoryUse, PhaseTime
from pyrometer.bench.stability import Soak
from pyrometer.compiler.difference import CompileDiff
from pyrometer.compiler.report import CompileReport
from pyrometer.evidence.script_outcome import ScriptOutcome
from pyrometer.hardware.environment import Environment
from pyrometer.loading.report import LoaderReport
from pyrometer.memory.difference import MemoryDiff
from pyrometer.memory.profile import MemoryProfile, PredictedMemory
from pyrometer.memory.snapshots.difference import SnapshotDiff
from pyrometer.memory.snapshots.report import SnapshotReport
from pyrometer.numerics.report import NumericsReport
from pyrometer.record import Record, doc, joined
from pyrometer.rules.audit.record import AuditGroup
from pyrometer.rules.diagnosis import ReadingStep
from pyrometer.rules.finding import Finding, Suppressed
from pyrometer.trace.capture.record import Capture
from pyrometer.trace.difference.record import TraceDiff
from pyrometer.trace.jobs.job import Job
from pyrometer.trace.reporting.rank_report import RankReport
from pyrometer.trace.reporting.verdict import TraceVerdict
from pyrometer.tuning.checkpointing.record import CheckpointPlan
from pyrometer.tuning.shapes.record import ShapeAdvice
from pyrometer.version import __version__
from pyrometer.workload.program.record import Program

SCHEMA_VERSION = 1


class Document(Record, frozen=True, kw_only=True):
    """The head of every document."""

    schema_version: int = SCHEMA_VERSION
    tool_version: str = __version__
    run_id: Annotated[str | None, doc("id of the stored run; null with --no-store")] = None
    created: Annotated[str | None, doc("when the result was taken, RFC 3339 in UTC")] = None
    command: Annotated[list[str] | None, doc("the command line that made it; null in library use")] = None


class TargetDocument(Document, frozen=True, kw_only=True):
    """The head of a document about one target: what was run, and on which machine."""

    target: str
    environment: Environment


class BenchDocument(TargetDocument, frozen=True, kw_only=True):
    """`pyrometer bench TARGET --json`, alone or with `--vs`, `--cold` or `--soak`."""

    versus: Annotated[str | None, doc("the other target, with --vs only")] = None
    measurement: Annotated[Measurement | None, doc("of the target; null with --vs")] = None
    verdict: Annotated[Verdict | None, doc("with --vs only")] = None
    cold: Annotated[ColdStarts | None, doc("with --cold only")] = None
    soak: Annotated[Soak | None, doc("with --soak only")] = None
    loading: Annotated[LoaderReport | None, doc("how the data arrives; null but for training")] = None


class MatrixDocument(TargetDocument, frozen=True, kw_only=True):
    """`pyrometer bench TARGET --matrix … --json`."""

    matrix: Matrix


class CheckDocument(TargetDocument, frozen=True, kw_only=True):
    """`pyrometer check TARGET --json`."""

    measurement: Annotated[Measurement | None, doc("null when not a single step was seen")]
    phases: list[PhaseTime]
    memory: MemoryUse | None
    findings: Annotated[list[Finding], doc("what the rules found, the most rewarding first")] = []
    reading: Annotated[list[ReadingStep], doc("the profile, read in the order in which an expert does")] = []
    suppressed: Annotated[list[Suppressed], doc("findings that the user chose not to see")] = []
    script: ScriptOutcome | None = None
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
    report_path: Annotated[str | None, doc("the HTML file")]


class AuditDocument(TargetDocument, frozen=True, kw_only=True):
    """`pyrometer audit TARGET --json`: an `Audit` with the head of a document."""

    groups: list[AuditGroup]
    score: Annotated[float | None, doc("100 times passed over applicable; null when nothing applies")]
    band: Annotated[Literal["below 70", "70 to 90", "above 90"] | None, doc("of the score")]
    applicable: Annotated[int, doc("items that passed or failed")]
    passed: int
    unknown: Annotated[int, doc("items without evidence; they count neither way")]
    notes: list[str] = []


class TraceDocument(Document, frozen=True, kw_only=True):
    """`pyrometer trace … --json`."""

    target: Annotated[str, doc("the files, or what was captured")]
    environment: Annotated[Environment | None, doc("of a capture; files do not say all of theirs")] = None
    capture: Annotated[Capture | None, doc("how it was recorded, and at what cost; null for files")] = None
    verdict: Annotated[TraceVerdict | None, doc("null when no rank could be read")] = None
    ranks: list[RankReport] = []
    job: Annotated[Job | None, doc("the ranks beside each other; with several files")] = None
    diff: Annotated[TraceDiff | None, doc("with --diff only; the ranks are then the two sides")] = None


class _CompileHead(Document, frozen=True, kw_only=True):
    target: Annotated[str, doc("what was run, or the log that was read")]
    environment: Annotated[
        Environment | None, doc("null for a log: it does not say all of its machine's")
    ] = None
    over_budget: Annotated[
        list[str], doc("limits that were asked for and are exceeded, a sentence each")
    ] = []
    divergence: Annotated[
        list[str], doc("where processes of one job decided differently; with several logs only")
    ] = []
    shapes: Annotated[ShapeAdvice | None, doc("with --shapes only")] = None
    diff: Annotated[CompileDiff | None, doc("with --diff only")] = None


if TYPE_CHECKING:  # a record cannot have two bases, a type can

    class CompileDocument(_CompileHead, CompileReport, frozen=True, kw_only=True):
        """`pyrometer compile … --json`."""

else:
    CompileDocument = joined("CompileDocument", _CompileHead, CompileReport, "`pyrometer compile … --json`.")


class _MemoryHead(Document, frozen=True, kw_only=True):
    target: str
    environment: Annotated[Environment | None, doc("null for a script: it ran in a process of its own")] = (
        None
    )
    over_limit: Annotated[list[str], doc("limits that were asked for and are exceeded, a sentence each")] = []
    what_if: Annotated[list[PredictedMemory], doc("with --predict only: the same under other settings")] = []
    plan: Annotated[CheckpointPlan | None, doc("with --plan only: what to compute again")] = None
    diff: Annotated[MemoryDiff | None, doc("with --diff only")] = None


class _SnapshotHead(Document, frozen=True, kw_only=True):
    target: Annotated[str, doc("the file")]
    over_limit: Annotated[list[str], doc("limits that were asked for and are exceeded, a sentence each")] = []
    diff: Annotated[SnapshotDiff | None, doc("with --diff only")] = None


if TYPE_CHECKING:

    class MemoryDocument(_MemoryHead, MemoryProfile, frozen=True, kw_only=True):
        """`pyrometer memory TARGET --json`."""

    class SnapshotDocument(_SnapshotHead, SnapshotReport, frozen=True, kw_only=True):
        """`pyrometer memory SNAPSHOT --json`."""

else:
    SnapshotDocument = joined(
        "SnapshotDocument", _SnapshotHead, SnapshotReport, "`pyrometer memory SNAPSHOT --json`."
    )
    MemoryDocument = joined("MemoryDocument", _MemoryHead, MemoryProfile, "`pyrometer memory TARGET --json`.")


class CalibrationDocument(TargetDocument, frozen=True, kw_only=True):
    """`pyrometer calibrate --json`."""

    target: Annotated[str, doc("what was compared with itself")]
    calibration: Calibration


class EnvironmentDocument(Document, frozen=True, kw_only=True):
    """`pyrometer env --json`."""

    environment: Environment
