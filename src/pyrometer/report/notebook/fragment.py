"""The part of a report that fits one record: a headline, a drawing, a few figures and tables, all static."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup

from pyrometer.bench.calibration import Calibration
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.matrix.record import Matrix
from pyrometer.bench.measurement import Measurement
from pyrometer.bench.record import ColdStarts, Soak
from pyrometer.compiler.report import CompileReport
from pyrometer.hardware.record import Environment
from pyrometer.loading.report import LoaderReport
from pyrometer.memory.profile import MemoryProfile, PredictedMemory
from pyrometer.memory.snapshots.report import SnapshotReport
from pyrometer.quantity import format_bytes
from pyrometer.record import Record
from pyrometer.report.chapters.memory import ledger_shares
from pyrometer.report.charts.forest import forest
from pyrometer.report.charts.histogram import histogram
from pyrometer.report.charts.shares import Share, share_bar
from pyrometer.report.charts.windows import window_line
from pyrometer.report.documents import CheckDocument
from pyrometer.report.facts import calibration as of_calibration
from pyrometer.report.facts import cold as of_cold
from pyrometer.report.facts import compile as of_compile
from pyrometer.report.facts import findings as of_findings
from pyrometer.report.facts import loading as of_loading
from pyrometer.report.facts import matrix as of_matrix
from pyrometer.report.facts import measurement as of_measurement
from pyrometer.report.facts import memory as of_memory
from pyrometer.report.facts import snapshot as of_snapshot
from pyrometer.report.facts import soak as of_soak
from pyrometer.report.facts import step as of_step
from pyrometer.report.facts import surroundings as of_surroundings
from pyrometer.report.facts import trace as of_rank
from pyrometer.report.facts import trace_words
from pyrometer.report.facts import verdict as of_verdict
from pyrometer.report.facts.layout import Fact, Section, Table
from pyrometer.rules.diagnosis import Diagnosis
from pyrometer.rules.finding import Finding
from pyrometer.rules.lint.output.text import summary_of
from pyrometer.rules.lint.result import LintResult
from pyrometer.text import shortened
from pyrometer.trace.records.rank import RankReport
from pyrometer.trace.reporting.verdict import judge
from pyrometer.tuning.shapes.record import ShapeStrategies

MOST_ROWS = 8
MOST_SECTIONS = 3
MOST_TEXT = 120


class Fragment(NamedTuple):
    """What a notebook shows of a record."""

    headline: str
    subtitle: str = ""
    drawing: Markup | None = None
    shares: Sequence[Share] = ()  # the legend of a bar
    sections: Sequence[Section] = ()


def fragment_of(record: Record) -> Fragment:
    """The fragment of a record; of a type that has none of its own, its fields.

    >>> class Point(Record, frozen=True, kw_only=True):
    ...     x_s: float
    >>> fragment_of(Point(x_s=1.5)).headline
    'Point'
    """
    for kind in type(record).__mro__:
        if kind in FRAGMENTS:
            fragment = FRAGMENTS[kind](record)
            return fragment._replace(sections=[section.shortened(MOST_ROWS) for section in fragment.sections])
    return _fields(record)


def _measurement(m: Measurement) -> Fragment:
    return Fragment(
        of_measurement.headline(m),
        of_measurement.subtitle(m),
        histogram(m),
        sections=[Section("latency", "Latency", of_measurement.spread(m), of_measurement.latency_table(m))],
    )


def _verdict(v: Verdict) -> Fragment:
    ratios = Section("ratios", "Ratios", [], of_verdict.ratio_table(v))
    return Fragment(of_verdict.headline(v), of_verdict.subtitle(v), forest(v), sections=[ratios])


def _calibration(c: Calibration) -> Fragment:
    section = Section(
        "resolution", "What this machine can tell apart", [], of_calibration.resolution_table(c)
    )
    return Fragment(of_calibration.headline(c), of_calibration.subtitle(c), sections=[section])


def _starts(starts: ColdStarts) -> Fragment:
    stages = Section("stages", "Stages of a cold start", [], of_cold.stage_table(starts))
    return Fragment(of_cold.headline(starts), of_cold.subtitle(starts), sections=[stages])


def _soak(soak: Soak) -> Fragment:
    drift = Section("drift", "Drift", [], of_soak.drift_table(soak))
    return Fragment(
        of_soak.headline(soak), of_soak.subtitle(soak), window_line(soak.windows), sections=[drift]
    )


def _matrix(matrix: Matrix) -> Fragment:
    cells = Section("cells", "Cells", [], of_matrix.main_table(matrix))
    return Fragment(of_matrix.headline(matrix), of_matrix.subtitle(matrix), sections=[cells])


def _rank(report: RankReport) -> Fragment:
    shares = trace_words.part_shares(report.breakdown_ns, trace_words.typical_ns(report))
    bar = share_bar(shares, "the traced time") if shares else None
    chapters = [
        section for section in of_rank.sections(report) if section.slug in {"operators", "gains", "idle"}
    ]
    return Fragment(judge(report).sentence, f"rank {report.rank}", bar, shares, chapters)


def _compile(report: CompileReport) -> Fragment:
    return Fragment(
        of_compile.headline(report), of_compile.subtitle(report), sections=of_compile.check_sections(report)
    )


def _memory(profile: MemoryProfile) -> Fragment:
    shares = ledger_shares(profile.ledger_bytes, profile.peak_bytes)
    bar = share_bar(shares, "the peak") if shares else None
    return Fragment(
        of_memory.headline(profile),
        of_memory.subtitle(profile),
        bar,
        shares,
        of_memory.check_sections(profile),
    )


def _predicted(memory: PredictedMemory) -> Fragment:
    when = f" in {memory.peak_phase}" if memory.peak_phase else ""
    shares = ledger_shares(memory.ledger_bytes, memory.peak_bytes)
    facts = [Fact(name, setting) for name, setting in memory.settings.items()]
    return Fragment(
        f"predicted peak {format_bytes(memory.peak_bytes)}{when}",
        " · ".join(memory.notes),
        share_bar(shares, "the peak") if shares else None,
        shares,
        [Section("settings", "Settings", facts)],
    )


def _snapshot(report: SnapshotReport) -> Fragment:
    return Fragment(
        of_snapshot.headline(report), of_snapshot.subtitle(report), sections=_fields(report).sections
    )


def _strategies(strategies: ShapeStrategies) -> Fragment:
    fields = _fields(strategies).sections
    return Fragment(strategies.advice.title, strategies.advice.text, sections=fields)


def _lint(result: LintResult) -> Fragment:
    rows = [(finding.place, f"{finding.code} {finding.name}", finding.message) for finding in result.findings]
    table = Table(("where", "rule", "what"), rows, frozenset({1, 2}))
    return Fragment(summary_of(result), sections=[Section("findings", "Findings", [], table)])


def _environment(environment: Environment) -> Fragment:
    facts = of_surroundings.environment_facts(environment)
    table = of_surroundings.settings_table(environment)
    return Fragment(
        of_surroundings.environment_line(environment),
        sections=[Section("environment", "Environment", facts, table)],
    )


def _loading(report: LoaderReport) -> Fragment:
    return Fragment(of_loading.headline(report), sections=of_loading.sections(report))


def _finding(finding: Finding) -> Fragment:
    return Fragment(f"{finding.code}: {finding.message}", finding.name, sections=[_advice([finding])])


def _diagnosis(diagnosis: Diagnosis) -> Fragment:
    score = "" if diagnosis.score is None else f"audit {diagnosis.score:.0f} of 100"
    return Fragment(
        f"{diagnosis.target}: {of_findings.headline(diagnosis.findings)}",
        score,
        sections=[_advice(diagnosis.findings)],
    )


def _checkup(document: CheckDocument) -> Fragment:
    m, findings = document.evidence.measurement, document.diagnosis.findings
    text = of_measurement.headline(m) if m is not None else "no step was seen"
    shares = of_step.drawn(document.evidence)
    bar = share_bar(shares, "a step") if shares else None
    headline = f"{document.target}: {text}"
    return Fragment(headline, of_findings.headline(findings), bar, shares, [_advice(findings)])


def _advice(findings: Sequence[Finding]) -> Section:
    rows = [
        (
            f"{card.finding.code} {_short_place(card.finding)}".strip(),
            card.gain,
            card.finding.message,
            card.finding.advice.text,
        )
        for card in of_findings.cards(findings)
    ]
    return Section(
        "findings", "Findings", [], Table(("where", "gain", "what", "do"), rows, frozenset({2, 3}))
    )


FRAGMENTS: Mapping[type[Record], Callable[[Any], Fragment]] = MappingProxyType(
    {
        Calibration: _calibration,
        CheckDocument: _checkup,
        ColdStarts: _starts,
        CompileReport: _compile,
        Diagnosis: _diagnosis,
        Environment: _environment,
        Finding: _finding,
        LintResult: _lint,
        LoaderReport: _loading,
        Matrix: _matrix,
        Measurement: _measurement,
        MemoryProfile: _memory,
        PredictedMemory: _predicted,
        RankReport: _rank,
        ShapeStrategies: _strategies,
        SnapshotReport: _snapshot,
        Soak: _soak,
        Verdict: _verdict,
    }
)
"""Type of record: what a notebook shows of it."""


def _short_place(finding: Finding) -> str:
    where = finding.where
    return f"{PurePath(where.file).name}:{where.line}" if where.file and where.line else ""


def _fields(record: Record) -> Fragment:
    facts = [Fact(field.name, _said(getattr(record, field.name))) for field in msgspec.structs.fields(record)]
    said = getattr(record, "sentence", None)
    headline = said if isinstance(said, str) and said else type(record).__name__
    return Fragment(headline, sections=[Section("fields", "Fields", facts)])


def _said(value: Any) -> str:
    if isinstance(value, (list, dict)) and len(value) > MOST_ROWS:
        return f"{len(value):,} entries"
    return shortened(repr(value), MOST_TEXT)
