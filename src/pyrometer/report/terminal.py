"""What the terminal shows: rich renderables of records. The first line is the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measurement import Measurement, PhaseTime
from pyrometer.bench.quality import Caveat, Doubt
from pyrometer.bench.stability import Soak
from pyrometer.quantity import format_seconds
from pyrometer.report import kinds
from pyrometer.report import terminal_layout as layout
from pyrometer.report.charts.bins import bin_count, count_bins
from pyrometer.report.charts.forest import ratio_scale
from pyrometer.report.charts.scale import fit
from pyrometer.report.charts.shares import Share
from pyrometer.report.documents import (
    BenchDocument,
    CalibrationDocument,
    CheckDocument,
    EvidenceDocument,
    MatrixDocument,
    TargetDocument,
    TraceDocument,
)
from pyrometer.report.facts import calibration as of_calibration
from pyrometer.report.facts import cold as of_cold
from pyrometer.report.facts import compile as of_compile
from pyrometer.report.facts import findings as of_findings
from pyrometer.report.facts import loading as of_loading
from pyrometer.report.facts import matrix as of_matrix
from pyrometer.report.facts import measurement as of_measurement
from pyrometer.report.facts import memory as of_memory
from pyrometer.report.facts import soak as of_soak
from pyrometer.report.facts import surroundings, trace_words
from pyrometer.report.facts import trace as of_rank
from pyrometer.report.facts import trace_document as of_trace
from pyrometer.report.facts import trace_gains as of_gains
from pyrometer.report.facts import verdict as of_verdict
from pyrometer.report.facts.layout import Section, Table, percent
from pyrometer.report.glyphs import Portable, ShareBar, interval_line, phase_mark, sparkline
from pyrometer.report.run_views import comparison_view
from pyrometer.report.terminal_compile import compile_view, compiled_rows
from pyrometer.report.terminal_findings import audit_view, finding_rows, reading_rows
from pyrometer.report.terminal_memory import loading_rows, memory_rows, memory_view, snapshot_view
from pyrometer.trace.analysis.what_if import WhatIf
from pyrometer.trace.reporting.rank_report import RankReport

OUTCOME_STYLES = {"faster": "bold green", "slower": "bold red", "same": "bold", "undecided": "bold yellow"}
AXIS_CELLS = 50

TRACE_ROWS = 6
"""layout.Rows of each table of a trace; the page and the document hold more."""


def render_document(kind: str, document: dict[str, Any]) -> RenderableType:
    """Render a stored document.

    Raises:
        InputError: the kind is unknown, or the document does not fit it.
    """
    record = kinds.read_document(kind, document)
    return VIEWS[kind](record)


def measurement_view(measurement: Measurement) -> RenderableType:
    """A measurement: answer, step split, latency, cold start, memory, quality."""
    rows = _failed_rows(measurement) + _measurement_rows(measurement, measurement.phases)
    return layout.page(*_measurement_head(measurement), rows)


def verdict_view(verdict: Verdict) -> RenderableType:
    """A verdict: the sentence, the ratios, what they rest on."""
    return layout.page(*_verdict_head(verdict), _verdict_rows(verdict))


def bench_view(document: BenchDocument) -> RenderableType:
    """What `pyrometer bench` prints."""
    rows: layout.Rows = []
    head = layout.head(f"nothing was measured of {document.target}", "")
    if document.verdict is not None:
        head = _verdict_head(document.verdict)
        rows += _verdict_rows(document.verdict)
    if document.measurement is not None:
        if document.verdict is None:
            head = _measurement_head(document.measurement)
        rows += _failed_rows(document.measurement)
        rows += _measurement_rows(document.measurement, document.measurement.phases)
    if document.cold is not None:
        told = [of_cold.headline(document.cold), of_cold.subtitle(document.cold)]
        rows.append(("Starts", Group(*map(Text, told), layout.table(of_cold.stage_table(document.cold)))))
    if document.soak is not None:
        rows += _soak_rows(document.soak)
    if document.loading is not None:
        rows += loading_rows(document.loading)
    return layout.page(*head, rows + _machine_rows(document))


def check_view(document: CheckDocument) -> RenderableType:
    """All that `pyrometer check` found: `--full`, and `pyrometer show`."""
    rows = _failed_rows(document.measurement) + _explained_rows(document)
    if document.measurement is not None:
        rows += _measurement_rows(document.measurement, [] if document.trace else document.phases)
    rows += _script_rows(document)
    if document.trace is not None:
        rows += _trace_rows(document.trace, of_rank.check_sections(document.trace, document.capture))
    if document.compiled is not None:
        rows += compiled_rows(document.compiled)
    if document.memory_profile is not None:
        rows += memory_rows(document.memory_profile, advised=not document.findings)
    if document.loading is not None:
        rows += loading_rows(document.loading, advised=not document.findings)
    return layout.page(*_check_head(document), rows + _note_rows(document) + _machine_rows(document))


def check_summary(document: CheckDocument) -> RenderableType:
    """What `pyrometer check` prints: the answer, the findings, the reading, and one line of each observer."""
    m = document.measurement
    rows = _failed_rows(m) + _explained_rows(document)
    if m is not None:
        rows.append(("Step", layout.facts(of_measurement.cold(m))))
        rows.append(("Quality", _measured_quality(m)))
    if document.trace is not None:
        chapters = of_rank.check_sections(document.trace, document.capture)
        rows += _trace_rows(document.trace, [one for one in chapters if one.slug == "breakdown"])
    rows += [(label, Text(told)) for label, told in _observers(document)]
    rows += _script_rows(document) + _note_rows(document) + _machine_rows(document)
    if document.run_id is not None:
        rows.append(("", Text(MORE.format(run=document.run_id), style="dim")))
    return layout.page(*_check_head(document), rows)


MORE = "every chapter: the report, `pyrometer show {run}`, or --full; a finding: `pyrometer rule CODE`"


def _observers(document: CheckDocument) -> list[tuple[str, str]]:
    said = []
    if document.compiled is not None:
        said.append(("Compile", of_compile.headline(document.compiled)))
    if document.memory_profile is not None:
        said.append(("Peak", of_memory.headline(document.memory_profile)))
    if document.loading is not None:
        said.append(("Data", of_loading.headline(document.loading)))
    return said


def _check_head(document: CheckDocument) -> tuple[RenderableType, RenderableType]:
    if document.measurement is None:
        head = layout.head(f"no step was seen in {document.target}", "")
    else:
        head = _measurement_head(document.measurement)
    if document.trace_verdict is None:
        return head
    return Group(head[0], Text(document.trace_verdict.sentence)), head[1]


def _explained_rows(document: CheckDocument) -> layout.Rows:
    if not document.reading:
        return []  # stored before there were rules
    return finding_rows(document.findings) + reading_rows(document.reading)


def _script_rows(document: CheckDocument) -> layout.Rows:
    if document.script is None:
        return []
    return [("Script", layout.facts(surroundings.script_facts(document.script)))]


def _note_rows(document: CheckDocument) -> layout.Rows:
    hidden = of_findings.suppressed_text(document.suppressed)
    return [("Note", Text(note)) for note in [*document.notes, *([hidden] if hidden else [])]]


def trace_view(document: TraceDocument) -> RenderableType:
    """What `pyrometer trace` prints."""
    head = layout.head(of_trace.headline(document), of_trace.subtitle(document))
    rows: layout.Rows = finding_rows(document.findings) if document.findings else []
    for part in of_trace.parts(document, most_ranks=1):
        if part.title:
            rows.append((part.title, Text()))
        rows += _trace_rows(part.report, part.sections)
    return layout.page(*head, rows)


def _trace_rows(report: RankReport | None, sections: Sequence[Section]) -> layout.Rows:
    return [
        (section.slug.capitalize(), _section(report, section))
        for section in sections
        if section.slug not in of_rank.DRAWN
    ]


def frame_view(frame: pl.DataFrame) -> RenderableType:
    """The answer to a query, whole."""
    rows = [tuple("" if cell is None else str(cell) for cell in row) for row in frame.iter_rows()]
    words = frozenset(i for i, dtype in enumerate(frame.dtypes) if not dtype.is_numeric())
    return Portable(layout.table(Table(tuple(frame.columns), rows, words)))


def what_if_view(found: WhatIf) -> RenderableType:
    """A prediction in one line, and what it rests on."""
    head = layout.head(of_gains.headline(found), of_gains.subtitle(found))
    return layout.page(*head, [("Note", Text(note)) for note in [found.method, *found.notes]])


def _section(report: RankReport | None, section: Section) -> RenderableType:
    parts: list[RenderableType] = [layout.facts(section.facts)] if section.facts else []
    if section.slug == "breakdown" and report is not None:
        shares = trace_words.part_shares(report.breakdown_ns)
        parts.append(ShareBar([part.share for part in shares], [part.slot for part in shares]))
        parts.append(_legend(shares))
    elif section.table is not None:
        parts.append(layout.table(section.table._replace(rows=section.table.rows[:TRACE_ROWS])))
    return Group(*parts)


def _legend(shares: Sequence[Share]) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    for part in shares:
        mark, colour = phase_mark(part.slot)
        grid.add_row(
            Text.assemble((mark, colour), " ", part.name), Text(percent(part.share)), Text(part.said)
        )
    return grid


def calibration_view(document: CalibrationDocument) -> RenderableType:
    """What `pyrometer calibrate` prints."""
    found = document.calibration
    rows: layout.Rows = [("Apart", layout.table(of_calibration.resolution_table(found)))]
    rows.append(("Quality", _quality(found.advice, of_calibration.trust(found))))
    if found.peaks is not None:
        rows.append(("Peaks", layout.table(of_calibration.peak_table(found.peaks))))
        if found.peaks.skipped:
            rows.append(("", layout.table(of_calibration.skipped_table(found.peaks))))
    head = layout.head(of_calibration.headline(found), of_calibration.subtitle(found))
    return layout.page(*head, rows + _machine_rows(document))


def matrix_view(document: MatrixDocument) -> RenderableType:
    """What `pyrometer bench --matrix` prints."""
    found = document.matrix
    tables = [of_matrix.main_table(found), of_matrix.tail_table(found), of_matrix.cost_table(found)]
    rows: layout.Rows = list(zip(("Cells", "Tails", "Costs"), map(layout.cell_table, tables), strict=True))
    rows.insert(1, ("", Text(of_matrix.LEGEND, style="dim")))
    if found.rejected:
        rows.append(("Rejected", layout.table(of_matrix.rejection_table(found), "left")))
    head = layout.head(of_matrix.headline(found), of_matrix.subtitle(found))
    return layout.page(*head, rows + _machine_rows(document))


VIEWS: dict[str, Callable[[Any], RenderableType]] = {
    "audit": audit_view,
    "bench": bench_view,
    "calibration": calibration_view,
    "check": check_view,
    "compare": comparison_view,
    "compile": compile_view,
    "matrix": matrix_view,
    "memory": memory_view,
    "snapshot": snapshot_view,
    "trace": trace_view,
}


def _measurement_head(m: Measurement) -> tuple[RenderableType, RenderableType]:
    return layout.head(of_measurement.headline(m), of_measurement.subtitle(m))


def _verdict_head(v: Verdict) -> tuple[RenderableType, RenderableType]:
    return layout.head(of_verdict.headline(v), of_verdict.subtitle(v), OUTCOME_STYLES[v.outcome])


def _measurement_rows(m: Measurement, phases: Sequence[PhaseTime]) -> layout.Rows:
    rows: layout.Rows = []
    if phases:
        rows.append(("Step", _phases(phases)))
    rows.append(("Latency", _latency(m)))
    rows.append(("Cold", layout.facts(of_measurement.cold(m))))
    rows.append(("Work", layout.facts(of_measurement.work(m))))
    if m.memory is not None:
        rows.append(("Memory", layout.facts(of_measurement.memory_facts(m.memory))))
    rows.append(("Quality", _measured_quality(m)))
    return rows


def _failed_rows(m: Measurement | None) -> layout.Rows:
    """The first thing to do where the program failed."""
    first = of_measurement.mending(m) if m is not None else None
    return [] if first is None else [("First", _quality([first], ""))]


def _measured_quality(m: Measurement) -> RenderableType:
    return _quality(of_measurement.other_caveats(m), of_measurement.trust(m))


def _soak_rows(soak: Soak) -> layout.Rows:
    every = -(-len(soak.windows) // AXIS_CELLS)
    line = sparkline([round(window.p50_s * 1e9) for window in soak.windows[::every]])
    told = [of_soak.headline(soak), of_soak.subtitle(soak), f"median step by window {line}"]
    rows: layout.Rows = [("Soak", Group(*map(Text, told), layout.table(of_soak.drift_table(soak))))]
    if soak.caveats:
        rows.append(("", _quality(soak.caveats, "")))
    return rows


def _verdict_rows(v: Verdict) -> layout.Rows:
    rows: layout.Rows = [("Ratio", Group(_ratio_axis(v), layout.table(of_verdict.ratio_table(v))))]
    sides = of_verdict.side_facts(v)
    if sides:
        rows.append(("Sides", layout.facts(sides)))
    rows.append(("Quality", _quality(v.caveats, of_verdict.trust(v))))
    return rows


def _ratio_axis(v: Verdict) -> RenderableType:
    scale = ratio_scale(v)
    values = {"estimate": v.ratio, "one": 1.0, "margin_low": 1 - v.margin, "margin_high": 1 + v.margin}
    values["low"] = v.ratio if v.ci_low is None else v.ci_low
    values["high"] = v.ratio if v.ci_high is None else v.ci_high
    line = interval_line({name: scale(value) for name, value in values.items()}, AXIS_CELLS)
    return Text(f"faster {line} slower")


def _machine_rows(document: TargetDocument | EvidenceDocument) -> layout.Rows:
    known = document.environment
    rows: layout.Rows = [] if known is None else [("Machine", Text(surroundings.environment_line(known)))]
    if isinstance(document, CheckDocument) and document.report_path is not None:
        rows.append(("Report", Text(document.report_path)))
    if document.run_id is not None:
        rows.append(("Run", Text(f"{document.run_id} · pyrometer show {document.run_id}")))
    return rows


def _phases(phases: Sequence[PhaseTime]) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    for _ in range(2):
        grid.add_column(justify="right")
    slots = of_measurement.phase_slots(phases)
    for slot, phase in zip(slots, phases, strict=True):
        mark, colour = phase_mark(slot)
        name = Text.assemble((mark, colour), " ", phase.name)
        grid.add_row(name, Text(percent(phase.share)), Text(f"{format_seconds(phase.mean_s)} on average"))
    return Group(ShareBar([phase.share for phase in phases], slots), grid)


def _latency(m: Measurement) -> RenderableType:
    parts: list[RenderableType] = [layout.table(of_measurement.latency_table(m))]
    samples = [sample for sample in m.samples_s if sample > 0]
    if len(samples) >= 8:
        scale = fit(samples, pad=0, log_above=4)
        bins = min(bin_count(samples, scale), AXIS_CELLS)
        line = sparkline(count_bins(samples, scale.edges(bins)))
        axis = ", logarithmic" if scale.log else ""
        parts.append(Text(f"{format_seconds(min(samples))} {line} {format_seconds(max(samples))}{axis}"))
    parts.append(layout.facts(of_measurement.spread(m)))
    deadline = of_measurement.deadline(m)
    if deadline is not None:
        parts.append(layout.facts([deadline]))
    return Group(*parts)


def _quality(caveats: Sequence[Caveat], trust: str) -> RenderableType:
    parts: list[RenderableType] = []
    for caveat in caveats:
        style = "bold red" if caveat.code == Doubt.FAILED.value else "bold yellow"
        parts.append(Text.assemble(("! ", style), caveat.message))
        parts.append(Padding(Text(f"→ {caveat.hint}"), (0, 0, 0, 2)))
    return Group(*parts) if parts else Text(trust)
