"""What the page of each kind of document shows: what fills its template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pyrometer.bench.cold import ColdStarts
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measurement import Measurement, PhaseTime
from pyrometer.bench.stability import Soak
from pyrometer.hardware.environment import Environment
from pyrometer.memory.profile import MemoryProfile
from pyrometer.report.attachments import MOST_RANKS
from pyrometer.report.charts.forest import forest
from pyrometer.report.charts.histogram import histogram, latency_scale
from pyrometer.report.charts.line import memory_line
from pyrometer.report.charts.stacked_bar import stacked_bar
from pyrometer.report.charts.strip import steady_strip, warmup_scale, warmup_strip
from pyrometer.report.charts.windows import window_line
from pyrometer.report.compile_context import compile_parts
from pyrometer.report.documents import (
    AuditDocument,
    BenchDocument,
    CalibrationDocument,
    CheckDocument,
    CompileDocument,
    Document,
    EvidenceDocument,
    MatrixDocument,
    MemoryDocument,
    SnapshotDocument,
    TraceDocument,
)
from pyrometer.report.facts import audit as of_audit
from pyrometer.report.facts import calibration as of_calibration
from pyrometer.report.facts import cold as of_cold
from pyrometer.report.facts import comparison as of_comparison
from pyrometer.report.facts import compile as of_compile
from pyrometer.report.facts import loading as of_loading
from pyrometer.report.facts import matrix as of_matrix
from pyrometer.report.facts import measurement as of_measurement
from pyrometer.report.facts import memory as of_memory
from pyrometer.report.facts import memory_peaks, surroundings
from pyrometer.report.facts import snapshot as of_snapshot
from pyrometer.report.facts import soak as of_soak
from pyrometer.report.facts import trace as of_rank
from pyrometer.report.facts import trace_document as of_trace
from pyrometer.report.facts import verdict as of_verdict
from pyrometer.report.facts.layout import Section
from pyrometer.report.facts.program import numerics_section, program_section
from pyrometer.report.facts.trace_document import Part
from pyrometer.report.findings_context import finding_parts
from pyrometer.report.memory_context import loading_parts, memory_parts, snapshot_parts
from pyrometer.report.run_documents import CompareDocument
from pyrometer.report.trace_context import part_context, part_contexts
from pyrometer.trace.capture.record import Capture
from pyrometer.trace.reporting.rank_report import RankReport

Context = dict[str, Any]

NOTHING: Mapping[str, Any] = MappingProxyType({
    "measured": None, "compared": None, "starts": None, "soaked": None, "script": (), "bound": None, "findings": None,
    "whereabouts": None, "traced": (), "compiled": None, "memory": None, "loading": None, "data_shares": None,
    "measured_first": False, "notes": (), "beside": (),
})  # fmt: skip
"""All that a page about a workload may show."""


def bench_context(document: BenchDocument) -> Context:
    """What the page of `pyrometer bench` shows."""
    m, v = document.measurement, document.verdict
    return {
        **NOTHING,
        "measured": _measurement(m, m.phases) if m is not None else None,
        "compared": _verdict(v) if v is not None else None,
        "starts": _starts(document.cold) if document.cold is not None else None,
        "soaked": _soak(document.soak) if document.soak is not None else None,
        "findings": _findings(document),
        "loading": loading_parts(document.loading, m) if document.loading is not None else None,
        **_surroundings(document, document.environment),
    }


def check_context(document: CheckDocument) -> Context:
    """What the page of `pyrometer check` shows."""
    m, script = document.measurement, document.script
    compiled, profile = document.compiled, document.memory_profile
    traced = _traced(document.trace, document.capture) if document.trace is not None else None
    return {
        **NOTHING,
        "measured": _measurement(m, document.phases, profile) if m is not None else None,
        "script": surroundings.script_facts(script) if script is not None else (),
        "bound": document.trace_verdict.sentence if document.trace_verdict is not None else None,
        "findings": finding_parts(document) if document.reading else None,
        "whereabouts": traced,
        "traced": [traced] if traced is not None else (),
        "compiled": compile_parts(compiled, of_compile.sections(compiled)) if compiled is not None else None,
        "memory": memory_parts(profile, of_memory.of_check(document)) if profile is not None else None,
        "loading": loading_parts(document.loading, m) if document.loading is not None else None,
        "measured_first": of_loading.profiler_distorts(m, document.loading, document.trace),
        "data_shares": of_loading.share_table(m, document.loading, document.trace),
        "notes": document.notes,
        "beside": _beside(document),
        **_surroundings(document, document.environment),
    }


def audit_context(document: AuditDocument) -> Context:
    """What the page of an audit shows."""
    return {
        "headline": _headline(of_audit.headline(document.audit)),
        "subtitle": of_audit.subtitle(document.audit),
        "sections": of_audit.sections(document.audit),
        "notes": document.notes,
        **_surroundings(document, document.environment),
    }


def calibration_context(document: CalibrationDocument) -> Context:
    """What the page of a calibration shows."""
    found = document.calibration
    return {
        "calibration": found,
        "headline": _headline(of_calibration.headline(found)),
        "subtitle": of_calibration.subtitle(found),
        "resolutions": of_calibration.resolution_table(found),
        "quality": {"trust": of_calibration.trust(found), "sound": not found.advice},
        "peaks": of_calibration.peak_table(found.peaks) if found.peaks is not None else None,
        "skipped": of_calibration.skipped_table(found.peaks) if found.peaks is not None else None,
        **_surroundings(document, document.environment),
    }


def matrix_context(document: MatrixDocument) -> Context:
    """What the page of a matrix shows."""
    found = document.matrix
    return {
        "headline": _headline(of_matrix.headline(found)),
        "subtitle": of_matrix.subtitle(found),
        "heat": of_matrix.heat_map(found),
        "cells": of_matrix.main_table(found),
        "legend": of_matrix.LEGEND,
        "tails": of_matrix.tail_table(found),
        "costs": of_matrix.cost_table(found),
        "rejected": of_matrix.rejection_table(found),
        **_surroundings(document, document.environment),
    }


def trace_context(document: TraceDocument) -> Context:
    """What the page of `pyrometer trace` shows."""
    return {
        "headline": _headline(of_trace.headline(document)),
        "subtitle": of_trace.subtitle(document),
        "findings": _findings(document),
        "traced": part_contexts(of_trace.parts(document, most_ranks=MOST_RANKS)),
        **_surroundings(document, document.environment),
    }


def compare_context(document: CompareDocument) -> Context:
    """What the page of `pyrometer compare` shows."""
    found = document.comparison
    return {
        "headline": _headline(of_comparison.headline(found)),
        "cautions": of_comparison.cautions(found),
        "figures": of_comparison.top_figures(found),
        "sides": of_comparison.side_table(found),
        "measured": of_comparison.figure_table(found),
        "sections": of_comparison.sections(found),
        **_surroundings(document, found.environment),
        "provenance": of_comparison.provenance_facts(found),
    }


def compile_context(document: CompileDocument) -> Context:
    """What the page of `pyrometer compile` shows."""
    return {
        "headline": _headline(of_compile.document_headline(document)),
        "subtitle": of_compile.subtitle(document.report),
        "findings": _findings(document),
        "over_budget": document.over_budget,
        "compiled": compile_parts(document.report, of_compile.document_sections(document)),
        **_surroundings(document, document.environment),
    }


def memory_context(document: MemoryDocument) -> Context:
    """What the page of `pyrometer memory` shows."""
    parts = memory_parts(document.profile, of_memory.document_sections(document))
    return _of_bytes(document, document.environment, parts)


def snapshot_context(document: SnapshotDocument) -> Context:
    """What the page of a memory snapshot shows."""
    parts = snapshot_parts(document.report, of_snapshot.document_sections(document))
    return _of_bytes(document, None, parts)


def _of_bytes(
    document: MemoryDocument | SnapshotDocument, known: Environment | None, parts: Context
) -> Context:
    """Fills `memory.html.j2`."""
    return {
        "headline": _headline(parts["headline"]),
        "subtitle": parts["subtitle"],
        "findings": _findings(document),
        "over_limit": document.over_limit,
        "memory": parts,
        **_surroundings(document, known),
    }


VIEWS: dict[str, tuple[str, Callable[[Any], Context]]] = {
    "audit": ("audit.html.j2", audit_context),
    "bench": ("result.html.j2", bench_context),
    "calibration": ("calibration.html.j2", calibration_context),
    "check": ("result.html.j2", check_context),
    "compare": ("compare.html.j2", compare_context),
    "compile": ("compile.html.j2", compile_context),
    "matrix": ("matrix.html.j2", matrix_context),
    "memory": ("memory.html.j2", memory_context),
    "snapshot": ("memory.html.j2", snapshot_context),
    "trace": ("trace.html.j2", trace_context),
}
"""Kind of document: its template, and what fills it."""


def _findings(document: EvidenceDocument) -> Context | None:
    """What fills the chapter of findings, where there are any."""
    return finding_parts(document) if document.findings else None


def _headline(text: str) -> list[tuple[str, str]]:
    """The parts of a headline, each with its interval apart."""
    parts = [part.partition(" (") for part in text.split(" · ")]
    return [(said, f"({interval}" if interval else "") for said, _, interval in parts]


def _measurement(
    m: Measurement, phases: Sequence[PhaseTime], profile: MemoryProfile | None = None
) -> Context:
    due = of_measurement.deadline(m)
    spread = of_measurement.spread(m)
    return {
        "record": m,
        "headline": _headline(of_measurement.headline(m)),
        "subtitle": of_measurement.subtitle(m),
        "figures": memory_peaks.headline_figure(of_measurement.top_figures(m), profile),
        "phases": list(
            zip(of_measurement.phase_slots(phases), of_measurement.phase_table(phases).rows, strict=True)
        ),
        "phase_table": of_measurement.phase_table(phases),
        "split": stacked_bar(phases) if phases else None,
        "mending": of_measurement.mending(m),
        "caveats": of_measurement.other_caveats(m),
        "trust": of_measurement.trust(m),
        "sound": of_measurement.is_sound(m),
        "conditions": of_measurement.conditions_facts(m.conditions) if m.conditions is not None else [],
        "histogram": histogram(m),
        "histogram_log": bool(m.samples_s) and latency_scale(m).log,
        "latency": of_measurement.latency_table(m),
        "spread": spread if due is None else [due, *spread],
        "steady_strip": steady_strip(m),
        "warmup_strip": warmup_strip(m),
        "warmup_log": bool(m.warmup_s) and warmup_scale(m).log,
        "cold": [*of_measurement.cold(m), *of_measurement.work(m)],
        "memory": of_measurement.memory_facts(m.memory) if m.memory is not None else [],
        "memory_line": memory_line(m.memory) if m.memory is not None else None,
    }


def _traced(report: RankReport, capture: Capture | None) -> Context:
    """The chapters of a trace beside a measurement, whose page begins with where the step goes."""
    sections = [section for section in of_rank.sections(report, capture) if section.slug != "breakdown"]
    return part_context(Part("", report, sections))


def _beside(document: CheckDocument) -> list[tuple[str, Section]]:
    """Chapters that findings rest on and nothing draws, each with its page."""
    chapters = []
    if document.numerics is not None:
        chapters.append(("quality", numerics_section(document.numerics)))
    if document.program is not None:
        chapters.append(("environment", program_section(document.program)))
    return chapters


def _verdict(v: Verdict) -> Context:
    return {
        "record": v,
        "headline": _headline(of_verdict.headline(v)),
        "subtitle": of_verdict.subtitle(v),
        "figures": of_verdict.top_figures(v),
        "forest": forest(v),
        "ratios": of_verdict.ratio_table(v),
        "trust": of_verdict.trust(v),
        "sound": of_verdict.is_sound(v),
        "reference": of_verdict.reference_table(v.reference) if v.reference is not None else None,
    }


def _starts(starts: ColdStarts) -> Context:
    return {
        "headline": of_cold.headline(starts),
        "subtitle": of_cold.subtitle(starts),
        "stages": of_cold.stage_table(starts),
    }


def _soak(soak: Soak) -> Context:
    return {
        "record": soak,
        "headline": of_soak.headline(soak),
        "subtitle": of_soak.subtitle(soak),
        "drift": of_soak.drift_table(soak),
        "line": window_line(soak.windows),
    }


def _surroundings(document: Document, known: Environment | None) -> Context:
    """Where a result comes from; what was read from files may not tell its machine."""
    return {
        "environment_line": surroundings.environment_line(known) if known is not None else None,
        "environment": surroundings.environment_facts(known) if known is not None else [],
        "settings": surroundings.settings_table(known) if known is not None else None,
        "provenance": surroundings.provenance_facts(document),
    }
