"""One self-contained HTML file per result: no network; it opens from disk, prints and mails.

All of it can be read without its script, which divides it into pages and draws what is better explored than read. The
document itself travels in a data block of the page, so that the page can be turned back into data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from pyrometer.bench.cold import ColdStarts
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measurement import Measurement, PhaseTime
from pyrometer.bench.stability import Soak
from pyrometer.errors import InputError
from pyrometer.files import replacing
from pyrometer.hardware.environment import Environment
from pyrometer.memory.profile import MemoryProfile
from pyrometer.report import kinds
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
    MatrixDocument,
    MemoryDocument,
    SnapshotDocument,
    TargetDocument,
    TraceDocument,
)
from pyrometer.report.exhibits import Exhibits
from pyrometer.report.facts import audit as of_audit
from pyrometer.report.facts import calibration as of_calibration
from pyrometer.report.facts import cold as of_cold
from pyrometer.report.facts import comparison as of_comparison
from pyrometer.report.facts import compile as of_compile
from pyrometer.report.facts import matrix as of_matrix
from pyrometer.report.facts import measurement as of_measurement
from pyrometer.report.facts import memory as of_memory
from pyrometer.report.facts import memory_peaks, surroundings
from pyrometer.report.facts import snapshot as of_snapshot
from pyrometer.report.facts import soak as of_soak
from pyrometer.report.facts import trace as of_rank
from pyrometer.report.facts import trace_document as of_trace
from pyrometer.report.facts import verdict as of_verdict
from pyrometer.report.facts.layout import Section, percent, spans
from pyrometer.report.facts.program import numerics_section, program_section
from pyrometer.report.facts.trace_document import Part
from pyrometer.report.findings_context import finding_parts
from pyrometer.report.inline import inline, script
from pyrometer.report.memory_context import loading_parts, memory_parts, snapshot_parts
from pyrometer.report.navigation import assemble, page_of, replaced
from pyrometer.report.payloads.beside import beside_script
from pyrometer.report.payloads.block import document_element, element
from pyrometer.report.payloads.blocks import blocks_of
from pyrometer.report.run_documents import CompareDocument
from pyrometer.report.trace_context import MOST_RANKS, part_context, part_contexts
from pyrometer.report.visible import for_template
from pyrometer.report.widgets import places
from pyrometer.trace.capture.record import Capture
from pyrometer.trace.reporting.rank_report import RankReport

Context = dict[str, Any]


def render_document(kind: str, document: dict[str, Any], exhibits: Exhibits | None = None) -> str:
    """Render a stored document as a page.

    Raises:
        InputError: the kind is unknown, or the document does not fit it.
    """
    return page(kinds.read_document(kind, document), exhibits)


def page(document: Document, exhibits: Exhibits | None = None) -> str:
    """The page that shows a document; the same document and exhibits give the same bytes."""
    kind = kinds.kind_of(document)
    template, view = VIEWS[kind]
    shown = exhibits or Exhibits()
    blocks = list(blocks_of(document, shown))
    widgets = list(places(block.name for block in blocks))
    shell: Context = {
        "kind": kind,
        "document": document,
        "target": surroundings.named_target(document),
        "style": inline("report.css"),
        "early": inline("theme.js"),
        "app": script({place.widget for place in widgets}),
        "data": document_element(kind, document),
        "missing": shown.missing,
        "blocks": [*map(element, blocks), *beside_script(blocks)],
        "widgets": widgets,
    }
    return _templates().get_template(template).render(**shell, **view(document))


def write_report(document: Document, path: Path, exhibits: Exhibits | None = None) -> Path:
    """Write the page of a document: beside the target first, then renamed, so that no half-written file is left.

    Raises:
        InputError: the place cannot be written.
    """
    return save_page(page(document, exhibits), path)


def save_page(content: str, path: Path) -> Path:
    """Write a page that was made, in the same way.

    Raises:
        InputError: the place cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside:
            beside.write_text(content, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path}: cannot write the report ({error.strerror}); pass another place") from error
    return path


def bench_context(document: BenchDocument) -> Context:
    """What the page of `pyrometer bench` shows."""
    m, v = document.measurement, document.verdict
    return {
        "measured": _measurement(m, m.phases) if m is not None else None,
        "compared": _verdict(v) if v is not None else None,
        "starts": _starts(document.cold) if document.cold is not None else None,
        "soaked": _soak(document.soak) if document.soak is not None else None,
        "script": [],
        "bound": None,
        "findings": None,
        "whereabouts": None,
        "traced": [],
        "compiled": None,
        "memory": None,
        "loading": loading_parts(document.loading) if document.loading is not None else None,
        "notes": [],
        "beside": [],
        **_surroundings(document),
    }


def check_context(document: CheckDocument) -> Context:
    """What the page of `pyrometer check` shows."""
    m, script = document.measurement, document.script
    traced = _traced(document.trace, document.capture) if document.trace is not None else None
    return {
        "measured": _measurement(m, document.phases, document.memory_profile) if m is not None else None,
        "compared": None,
        "starts": None,
        "soaked": None,
        "script": surroundings.script_facts(script) if script is not None else [],
        "bound": document.trace_verdict.sentence if document.trace_verdict is not None else None,
        "findings": finding_parts(document) if document.reading else None,
        "whereabouts": traced,
        "traced": [traced] if traced is not None else [],
        "compiled": compile_parts(document.compiled, of_compile.sections(document.compiled))
        if document.compiled is not None
        else None,
        "memory": memory_parts(document.memory_profile, of_memory.of_check(document))
        if document.memory_profile is not None
        else None,
        "loading": loading_parts(document.loading) if document.loading is not None else None,
        "notes": document.notes,
        "beside": _beside(document),
        **_surroundings(document),
    }


def audit_context(document: AuditDocument) -> Context:
    """What the page of an audit shows."""
    return {
        "headline": _headline(of_audit.headline(document)),
        "subtitle": of_audit.subtitle(document),
        "sections": of_audit.sections(document),
        "notes": document.notes,
        **_surroundings(document),
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
        **_surroundings(document),
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
        **_surroundings(document),
    }


def trace_context(document: TraceDocument) -> Context:
    """What the page of `pyrometer trace` shows."""
    return {
        "headline": _headline(of_trace.headline(document)),
        "subtitle": of_trace.subtitle(document),
        "traced": part_contexts(of_trace.parts(document, most_ranks=MOST_RANKS)),
        **_whereabouts(document, document.environment),
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
        **_whereabouts(document, found.environment),
        "provenance": of_comparison.provenance_facts(found),
    }


def compile_context(document: CompileDocument) -> Context:
    """What the page of `pyrometer compile` shows."""
    return {
        "headline": _headline(of_compile.document_headline(document)),
        "subtitle": of_compile.subtitle(document),
        "over_budget": document.over_budget,
        "compiled": compile_parts(document, of_compile.document_sections(document)),
        **_whereabouts(document, document.environment),
    }


def memory_context(document: MemoryDocument) -> Context:
    """What the page of `pyrometer memory` shows."""
    return {
        "headline": _headline(of_memory.headline(document)),
        "subtitle": of_memory.subtitle(document),
        "over_limit": document.over_limit,
        "memory": memory_parts(document, of_memory.document_sections(document)),
        **_whereabouts(document, document.environment),
    }


def snapshot_context(document: SnapshotDocument) -> Context:
    """What the page of a memory snapshot shows."""
    return {
        "headline": _headline(of_snapshot.headline(document)),
        "subtitle": of_snapshot.subtitle(document),
        "over_limit": document.over_limit,
        "memory": snapshot_parts(document, of_snapshot.document_sections(document)),
        **_whereabouts(document, None),
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


def _surroundings(document: TargetDocument) -> Context:
    return {
        "environment_line": surroundings.environment_line(document.environment),
        "environment": surroundings.environment_facts(document.environment),
        "settings": surroundings.settings_table(document.environment),
        "provenance": surroundings.provenance_facts(document),
    }


def _whereabouts(
    document: TraceDocument | CompileDocument | MemoryDocument | SnapshotDocument | CompareDocument,
    known: Environment | None,
) -> Context:
    """The surroundings of what may have been read from files, which do not tell their machine."""
    return {
        "environment_line": surroundings.environment_line(known) if known is not None else None,
        "environment": surroundings.environment_facts(known) if known is not None else [],
        "settings": surroundings.settings_table(known) if known is not None else None,
        "provenance": surroundings.provenance_facts(document),
    }


@cache
def _asset(name: str) -> str:
    return files("pyrometer.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _asset(f"templates/{name}")),
        autoescape=True,
        finalize=for_template,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["spans"] = spans
    templates.filters["percent"] = percent
    templates.filters["page"] = page_of
    templates.filters["replaced"] = replaced
    templates.filters["assemble"] = assemble
    templates.filters["saving"] = of_memory.saving
    return templates
