"""Breaks, recompilations and findings at the lines that operations of a graph come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyrometer.compiler.graphs.record import Graph
from pyrometer.compiler.report import CompileReport
from pyrometer.report.facts.trace_words import short
from pyrometer.report.payloads.compile_graph import GraphMark
from pyrometer.report.payloads.compile_levels import Units
from pyrometer.rules.finding import Finding


class LineMark(NamedTuple):
    """Something to say about a line."""

    kind: str
    file: str
    line: int
    text: str
    code: str = ""


def line_marks(report: CompileReport, findings: Sequence[Finding]) -> list[LineMark]:
    """What a graph marks, break by break and finding by finding; what only follows from another break is left out."""
    return [*_of_breaks(report), *_of_guards(report), *_of_findings(findings)]


def marks_of(graph: Graph, units: Units, lines: Sequence[LineMark]) -> list[GraphMark]:
    """The marks whose line some operation of the graph comes from."""
    at: dict[tuple[str, int], dict[int, None]] = {}
    for node in graph.nodes:
        if node.file and node.op == "call":
            at.setdefault((node.file, node.line), {})[units.home[node.name]] = None
    marks = []
    for mark in lines:
        held = at.get((mark.file, mark.line))
        if held:
            marks.append(GraphMark(kind=mark.kind, text=mark.text, units=list(held), code=mark.code))
    return marks


def _of_breaks(report: CompileReport) -> Iterator[LineMark]:
    for graph_break in report.breaks:
        if not graph_break.chained:
            yield LineMark("break", graph_break.file, graph_break.line, short(graph_break.reason, 160))


def _of_guards(report: CompileReport) -> Iterator[LineMark]:
    met: dict[tuple[str, int, str], int] = {}
    for recompile in report.recompiles:
        for cause in recompile.causes[:1]:
            if cause.place is not None:
                key = (cause.place.path, cause.place.line_number, cause.kind)
                met[key] = met.get(key, 0) + 1
    for (file, line, kind), count in met.items():
        yield LineMark(
            "recompile", file, line, f"{count} × compiled again: a guard on {kind} from this line failed"
        )


def _of_findings(findings: Sequence[Finding]) -> Iterator[LineMark]:
    for finding in findings:
        if finding.where.file and finding.where.line:
            yield LineMark("finding", finding.where.file, finding.where.line, finding.message, finding.code)
