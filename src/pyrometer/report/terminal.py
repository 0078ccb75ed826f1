"""What the terminal shows: rich renderables of records. The first line is the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import polars as pl
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.measurement import Measurement, PhaseTime
from pyrometer.bench.quality import Caveat
from pyrometer.bench.stability import Soak
from pyrometer.checkup.checkup import Checkup
from pyrometer.quantity import format_seconds
from pyrometer.report import kinds
from pyrometer.report.charts.bins import bin_count, count_bins
from pyrometer.report.charts.forest import ratio_scale
from pyrometer.report.charts.scale import fit
from pyrometer.report.charts.shares import Share
from pyrometer.report.documents import (
    BenchDocument,
    CalibrationDocument,
    CheckDocument,
    MatrixDocument,
    TargetDocument,
    TraceDocument,
)
from pyrometer.report.facts import calibration as of_calibration
from pyrometer.report.facts import cold as of_cold
from pyrometer.report.facts import matrix as of_matrix
from pyrometer.report.facts import measurement as of_measurement
from pyrometer.report.facts import soak as of_soak
from pyrometer.report.facts import surroundings, trace_words
from pyrometer.report.facts import trace as of_rank
from pyrometer.report.facts import trace_document as of_trace
from pyrometer.report.facts import trace_gains as of_gains
from pyrometer.report.facts import verdict as of_verdict
from pyrometer.report.facts.layout import Fact, Section, Table, percent
from pyrometer.report.glyphs import Flow, Portable, ShareBar, interval_line, phase_mark, sparkline
from pyrometer.trace.analysis.what_if import WhatIf
from pyrometer.trace.reporting.rank_report import RankReport

OUTCOME_STYLES = {"faster": "bold green", "slower": "bold red", "same": "bold", "undecided": "bold yellow"}
OPENING = {
    *(
        "Apart",
        "Peaks",
        "Step",
        "Latency",
        "Ratio",
        "Cold",
        "Starts",
        "Soak",
        "Cells",
        "Tails",
        "Costs",
        "Rejected",
    ),
    *("Quality", "Script", "Machine", "Note"),
    *(
        "Breakdown",
        "Gains",
        "Health",
        "Steps",
        "Path",
        "Phases",
        "Lines",
        "Modules",
        "Operators",
        "Idle",
        "Gaps",
    ),
    *("Sync", "Launches", "Kernels", "Copies", "Collectives", "Roofline", "Allocations", "Capture"),
    *("Ranks", "Stragglers", "Matched", "Pipeline", "Evidence", "Parts", "Nodes", "Groups"),
}
"""Rows with a blank line above."""

AXIS_CELLS = 50

TRACE_ROWS = 6
"""Rows of each table of a trace; the page and the document hold more."""

Rows = list[tuple[str, RenderableType]]


def render_document(kind: str, document: dict[str, Any]) -> RenderableType:
    """Render a stored document.

    Raises:
        InputError: the kind is unknown, or the document does not fit it.
    """
    record = kinds.read_document(kind, document)
    return VIEWS[kind](record)


def measurement_view(measurement: Measurement) -> RenderableType:
    """A measurement: answer, step split, latency, cold start, memory, quality."""
    return _page(*_measurement_head(measurement), _measurement_rows(measurement, measurement.phases))


def verdict_view(verdict: Verdict) -> RenderableType:
    """A verdict: the sentence, the ratios, what they rest on."""
    return _page(*_verdict_head(verdict), _verdict_rows(verdict))


def bench_view(document: BenchDocument) -> RenderableType:
    """What `pyrometer bench` prints."""
    rows: Rows = []
    head = _head(f"nothing was measured of {document.target}", "")
    if document.verdict is not None:
        head = _verdict_head(document.verdict)
        rows += _verdict_rows(document.verdict)
    if document.measurement is not None:
        if document.verdict is None:
            head = _measurement_head(document.measurement)
        rows += _measurement_rows(document.measurement, document.measurement.phases)
    if document.cold is not None:
        told = [of_cold.headline(document.cold), of_cold.subtitle(document.cold)]
        rows.append(("Starts", Group(*map(Text, told), _table(of_cold.stage_table(document.cold)))))
    if document.soak is not None:
        rows += _soak_rows(document.soak)
    return _page(*head, rows + _machine_rows(document))


def check_view(document: CheckDocument | Checkup) -> RenderableType:
    """What `pyrometer check` prints."""
    rows: Rows = []
    if document.measurement is None:
        head = _head(f"no step was seen in {document.target}", "")
    else:
        head = _measurement_head(document.measurement)
        rows += _measurement_rows(document.measurement, [] if document.trace else document.phases)
    if document.script is not None:
        rows.append(("Script", _facts(surroundings.script_facts(document.script))))
    if document.trace is not None:
        rows += _trace_rows(document.trace, of_rank.check_sections(document.trace, document.capture))
    rows += [("Note", Text(note)) for note in document.notes]
    if document.trace_verdict is not None:
        head = (Group(head[0], Text(document.trace_verdict.sentence)), head[1])
    return _page(*head, rows + _machine_rows(document))


def trace_view(document: TraceDocument) -> RenderableType:
    """What `pyrometer trace` prints."""
    head = _head(of_trace.headline(document), of_trace.subtitle(document))
    rows: Rows = []
    for part in of_trace.parts(document, most_ranks=1):
        if part.title:
            rows.append((part.title, Text()))
        rows += _trace_rows(part.report, part.sections)
    return _page(*head, rows)


def _trace_rows(report: RankReport | None, sections: Sequence[Section]) -> Rows:
    return [
        (section.slug.capitalize(), _section(report, section))
        for section in sections
        if section.slug not in of_rank.DRAWN
    ]


def frame_view(frame: pl.DataFrame) -> RenderableType:
    """The answer to a query, whole."""
    rows = [tuple("" if cell is None else str(cell) for cell in row) for row in frame.iter_rows()]
    words = frozenset(i for i, dtype in enumerate(frame.dtypes) if not dtype.is_numeric())
    return Portable(_table(Table(tuple(frame.columns), rows, words)))


def what_if_view(found: WhatIf) -> RenderableType:
    """A prediction in one line, and what it rests on."""
    head = _head(of_gains.headline(found), of_gains.subtitle(found))
    return _page(*head, [("Note", Text(note)) for note in [found.method, *found.notes]])


def _section(report: RankReport | None, section: Section) -> RenderableType:
    parts: list[RenderableType] = [_facts(section.facts)] if section.facts else []
    if section.slug == "breakdown" and report is not None:
        shares = trace_words.part_shares(report.breakdown_ns)
        parts.append(ShareBar([part.share for part in shares], [part.slot for part in shares]))
        parts.append(_legend(shares))
    elif section.table is not None:
        parts.append(_table(section.table._replace(rows=section.table.rows[:TRACE_ROWS])))
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
    rows: Rows = [("Apart", _table(of_calibration.resolution_table(found)))]
    rows.append(("Quality", _quality(found.advice, of_calibration.trust(found), None)))
    if found.peaks is not None:
        rows.append(("Peaks", _table(of_calibration.peak_table(found.peaks))))
        if found.peaks.skipped:
            rows.append(("", _table(of_calibration.skipped_table(found.peaks))))
    head = _head(of_calibration.headline(found), of_calibration.subtitle(found))
    return _page(*head, rows + _machine_rows(document))


def matrix_view(document: MatrixDocument) -> RenderableType:
    """What `pyrometer bench --matrix` prints."""
    found = document.matrix
    tables = [of_matrix.main_table(found), of_matrix.tail_table(found), of_matrix.cost_table(found)]
    rows: Rows = list(zip(("Cells", "Tails", "Costs"), map(_cell_table, tables), strict=True))
    rows.insert(1, ("", Text(of_matrix.LEGEND, style="dim")))
    if found.rejected:
        rows.append(("Rejected", _table(of_matrix.rejection_table(found), "left")))
    head = _head(of_matrix.headline(found), of_matrix.subtitle(found))
    return _page(*head, rows + _machine_rows(document))


VIEWS: dict[str, Callable[[Any], RenderableType]] = {
    "bench": bench_view,
    "calibration": calibration_view,
    "check": check_view,
    "matrix": matrix_view,
    "trace": trace_view,
}


def _page(headline: RenderableType, subtitle: RenderableType, rows: Rows) -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(ratio=1)
    for label, content in rows:
        if label in OPENING:
            grid.add_row()
        grid.add_row(label, content)
    return Portable(Group(headline, subtitle, grid))


def _head(headline: str, subtitle: str, style: str = "bold") -> tuple[RenderableType, RenderableType]:
    return _flow(headline, style), _flow(subtitle, "dim")


def _flow(text: str, style: str) -> RenderableType:
    return Flow([Text(part) for part in text.split(" · ")], style)


def _measurement_head(m: Measurement) -> tuple[RenderableType, RenderableType]:
    return _head(of_measurement.headline(m), of_measurement.subtitle(m))


def _verdict_head(v: Verdict) -> tuple[RenderableType, RenderableType]:
    return _head(of_verdict.headline(v), of_verdict.subtitle(v), OUTCOME_STYLES[v.outcome])


def _measurement_rows(m: Measurement, phases: Sequence[PhaseTime]) -> Rows:
    rows: Rows = []
    if phases:
        rows.append(("Step", _phases(phases)))
    rows.append(("Latency", _latency(m)))
    rows.append(("Cold", _facts(of_measurement.cold(m))))
    rows.append(("Work", _facts(of_measurement.work(m))))
    if m.memory is not None:
        rows.append(("Memory", _facts(of_measurement.memory_facts(m.memory))))
    rows.append(("Quality", _quality(m.warnings, of_measurement.trust(m), m.failure)))
    return rows


def _soak_rows(soak: Soak) -> Rows:
    every = -(-len(soak.windows) // AXIS_CELLS)
    line = sparkline([round(window.p50_s * 1e9) for window in soak.windows[::every]])
    told = [of_soak.headline(soak), of_soak.subtitle(soak), f"median step by window {line}"]
    rows: Rows = [("Soak", Group(*map(Text, told), _table(of_soak.drift_table(soak))))]
    if soak.caveats:
        rows.append(("", _quality(soak.caveats, "", None)))
    return rows


def _verdict_rows(v: Verdict) -> Rows:
    rows: Rows = [("Ratio", Group(_ratio_axis(v), _table(of_verdict.ratio_table(v))))]
    sides = of_verdict.side_facts(v)
    if sides:
        rows.append(("Sides", _facts(sides)))
    rows.append(("Quality", _quality(v.caveats, of_verdict.trust(v), None)))
    return rows


def _ratio_axis(v: Verdict) -> RenderableType:
    scale = ratio_scale(v)
    values = {"estimate": v.ratio, "one": 1.0, "margin_low": 1 - v.margin, "margin_high": 1 + v.margin}
    values["low"] = v.ratio if v.ci_low is None else v.ci_low
    values["high"] = v.ratio if v.ci_high is None else v.ci_high
    line = interval_line({name: scale(value) for name, value in values.items()}, AXIS_CELLS)
    return Text(f"faster {line} slower")


def _machine_rows(document: TargetDocument | Checkup) -> Rows:
    rows: Rows = [("Machine", Text(surroundings.environment_line(document.environment)))]
    if isinstance(document, CheckDocument) and document.report_path is not None:
        rows.append(("Report", Text(document.report_path)))
    if not isinstance(document, Checkup) and document.run_id is not None:
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
    parts: list[RenderableType] = [_table(of_measurement.latency_table(m))]
    samples = [sample for sample in m.samples_s if sample > 0]
    if len(samples) >= 8:
        scale = fit(samples, pad=0, log_above=4)
        bins = min(bin_count(samples, scale), AXIS_CELLS)
        line = sparkline(count_bins(samples, scale.edges(bins)))
        axis = ", logarithmic" if scale.log else ""
        parts.append(Text(f"{format_seconds(min(samples))} {line} {format_seconds(max(samples))}{axis}"))
    parts.append(_facts(of_measurement.spread(m)))
    deadline = of_measurement.deadline(m)
    if deadline is not None:
        parts.append(_facts([deadline]))
    return Group(*parts)


def _quality(caveats: Sequence[Caveat], trust: str, failure: str | None) -> RenderableType:
    parts: list[RenderableType] = [Text.assemble(("! ", "bold red"), failure)] if failure is not None else []
    for caveat in caveats:
        parts.append(Text.assemble(("! ", "bold yellow"), caveat.message))
        parts.append(Padding(Text(f"→ {caveat.hint}"), (0, 0, 0, 2)))
    return Group(*parts) if parts else Text(trust)


def _facts(facts: Sequence[Fact]) -> RenderableType:
    return Flow([Text.assemble((f"{fact.label} ", "dim"), fact.line) for fact in facts])


def _cell_table(table: Table) -> RenderableType:
    """A table whose first column gives way, so that the figures stay whole."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column(min_width=12)
    for _ in table.columns[1:]:
        grid.add_column(justify="right", no_wrap=True)
    _fill(grid, table)
    return grid


def _table(table: Table, justify: Literal["left", "right"] = "right") -> RenderableType:
    grid = Grid.grid(padding=(0, 2, 0, 0))
    grid.add_column()
    for index in range(1, len(table.columns)):
        grid.add_column(justify="left" if index in table.words else justify)
    _fill(grid, table)
    return grid


def _fill(grid: Grid, table: Table) -> None:
    grid.add_row(*[Text(column, style="dim") for column in table.columns])
    for row in table.rows:
        grid.add_row(*[Text(cell) for cell in row])
