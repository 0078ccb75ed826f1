"""What `--json` prints: one document per verb; its JSON Schema is generated from these types."""

from __future__ import annotations

from typing import Annotated

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.record import ColdStarts, Soak
from pyrometer.compiler.report import CompileDiff, CompileReport
from pyrometer.document import Document as Document  # noqa: PLC0414 - readers find all documents here
from pyrometer.evidence.evidence import Evidence
from pyrometer.hardware.record import Environment
from pyrometer.memory.difference import MemoryDiff
from pyrometer.memory.profile import MemoryProfile, PredictedMemory
from pyrometer.memory.snapshots.difference import SnapshotDiff
from pyrometer.memory.snapshots.report import SnapshotReport
from pyrometer.record import doc, to_dict
from pyrometer.report.attachments import Attachments
from pyrometer.rules.audit.record import Audit
from pyrometer.rules.diagnosis import Diagnosis
from pyrometer.rules.finding import Finding
from pyrometer.trace.difference.record import TraceDiff
from pyrometer.trace.jobs.job import JobCollective, Pipeline, RankTime, Straggler
from pyrometer.trace.records.rank import RankReport
from pyrometer.tuning.checkpointing.record import CheckpointPlan
from pyrometer.tuning.shapes.record import ShapeStrategies

_BESIDE = "_attachments"


class EvidenceDocument(Document, frozen=True, kw_only=True, dict=True):
    """The head of a document about one program: what was observed of it, and what that means."""

    evidence: Evidence
    diagnosis: Diagnosis

    def draw_with(self, attachments: Attachments) -> None:
        """Let the page that `save` writes show these, too; they are no part of the document."""
        self.__dict__[_BESIDE] = attachments

    @property
    def attachments(self) -> Attachments | None:
        """What its page draws, where that is at hand."""
        beside: Attachments | None = self.__dict__.get(_BESIDE)
        return beside

    @property
    def target(self) -> str:
        """What was looked at, as it was typed."""
        return self.evidence.target

    @property
    def environment(self) -> Environment | None:
        """The machine; null for what was read from files."""
        return self.evidence.environment

    @property
    def notes(self) -> list[str]:
        """What could not be observed or answered, and why."""
        return [*self.evidence.notes, *self.diagnosis.notes]


class BenchDocument(EvidenceDocument, frozen=True, kw_only=True):
    """`pyrometer bench TARGET --json`, alone or with `--vs`, `--cold` or `--soak`."""

    versus: Annotated[str | None, doc("the other target, with --vs only")] = None
    verdict: Annotated[Verdict | None, doc("with --vs only; the evidence then has no measurement")] = None
    cold: Annotated[ColdStarts | None, doc("with --cold only")] = None
    soak: Annotated[Soak | None, doc("with --soak only")] = None


class CheckDocument(EvidenceDocument, frozen=True, kw_only=True):
    """`pyrometer check TARGET --json`."""

    report_path: Annotated[str | None, doc("the HTML file")] = None


class AuditDocument(EvidenceDocument, frozen=True, kw_only=True):
    """`pyrometer audit TARGET --json`; the answers are `diagnosis.audit`."""

    @property
    def audit(self) -> Audit:
        """The answers, which such a document always has."""
        assert self.diagnosis.audit is not None, "an audit answers the checklist"
        return self.diagnosis.audit


class TraceDocument(EvidenceDocument, frozen=True, kw_only=True):
    """`pyrometer trace … --json`."""

    ranks: Annotated[list[RankTime], doc("where the time of each rank goes; none with --diff")] = []
    stragglers: Annotated[list[Straggler], doc("ranks that others wait for, the worst first")] = []
    collectives: Annotated[
        list[JobCollective], doc("matched over the ranks, the most waiting first; with several ranks only")
    ] = []
    pipeline: Annotated[list[Pipeline], doc("chains of ranks that send to each other")] = []
    findings: Annotated[list[Finding], doc("those of the diagnosis, the most rewarding first")] = []
    diff: Annotated[TraceDiff | None, doc("with --diff only; the evidence is of the second trace")] = None
    before: Annotated[RankReport | None, doc("of the first trace, with --diff only")] = None

    @classmethod
    def of(cls, evidence: Evidence, diagnosis: Diagnosis) -> TraceDocument:
        """The document of a trace, or of all traces of a job."""
        job, report = evidence.job, evidence.trace
        if job is not None:
            ranks = [RankTime.of(row.rank, row.parts, row.waited_ns) for row in job.ranks]
        else:
            ranks = [] if report is None else [RankTime.of(report.rank, to_dict(report.breakdown_ns), None)]
        return cls(
            evidence=evidence,
            diagnosis=diagnosis,
            ranks=ranks,
            stragglers=job.stragglers if job else [],
            collectives=job.collectives if job else [],
            pipeline=job.pipelines if job else [],
            findings=diagnosis.findings,
        )

    @property
    def reports(self) -> list[RankReport]:
        """All that can be shown: of a comparison both sides, of a job all ranks."""
        if self.evidence.ranks:
            return self.evidence.ranks
        return [report for report in (self.before, self.evidence.trace) if report is not None]


class CompileDocument(EvidenceDocument, frozen=True, kw_only=True):
    """`pyrometer compile … --json`; what was compiled is `evidence.compiled`."""

    over_budget: Annotated[
        list[str], doc("limits that were asked for and are exceeded, a sentence each")
    ] = []
    divergence: Annotated[
        list[str], doc("where processes of one job decided differently; with several logs only")
    ] = []
    shapes: Annotated[ShapeStrategies | None, doc("with --shapes only")] = None
    diff: Annotated[CompileDiff | None, doc("with --diff only")] = None

    @property
    def report(self) -> CompileReport:
        """What was compiled, which such a document always has."""
        assert self.evidence.compiled is not None, "there is a report, even when nothing was compiled"
        return self.evidence.compiled


class MemoryDocument(EvidenceDocument, frozen=True, kw_only=True):
    """`pyrometer memory TARGET --json`; the profile is `evidence.memory`."""

    over_limit: Annotated[list[str], doc("limits that were asked for and are exceeded, a sentence each")] = []
    what_if: Annotated[list[PredictedMemory], doc("with --predict only: the same under other settings")] = []
    plan: Annotated[CheckpointPlan | None, doc("with --plan only: what to compute again")] = None
    diff: Annotated[MemoryDiff | None, doc("with --diff only")] = None

    @property
    def profile(self) -> MemoryProfile:
        """The profile, which such a document always has."""
        assert self.evidence.memory is not None, "memory was profiled"
        return self.evidence.memory


class SnapshotDocument(EvidenceDocument, frozen=True, kw_only=True):
    """`pyrometer memory SNAPSHOT --json`; the report is `evidence.snapshot`."""

    over_limit: Annotated[list[str], doc("limits that were asked for and are exceeded, a sentence each")] = []
    diff: Annotated[SnapshotDiff | None, doc("with --diff only")] = None

    @property
    def report(self) -> SnapshotReport:
        """The report, which such a document always has."""
        assert self.evidence.snapshot is not None, "a snapshot was read"
        return self.evidence.snapshot


class EnvironmentDocument(Document, frozen=True, kw_only=True):
    """`pyrometer env --json`."""

    environment: Environment
