"""Short answers about what torch.compile did."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.compiler.report import CompileReport
from pyrometer.quantity import counted, format_seconds
from pyrometer.report.answer import asked, fixes, parts, trust
from pyrometer.report.answer.measured import named
from pyrometer.report.answer.short import Fix, ShortAnswer, Whole
from pyrometer.report.documents import CompileDocument
from pyrometer.report.facts import compile as of_compile
from pyrometer.report.facts import compile_breaks, compile_costs

TITLE = "Where compiling time goes"
ASKED = frozenset({"difference", "shapes", "ranks", "tried", "evaluation"})
"""Chapters that are there only where a flag asked for them."""


def of_document(document: CompileDocument) -> ShortAnswer:
    """Graphs, breaks and recompilations, what to write instead, and what compiling cost."""
    report = document.report
    meant = fixes.of_findings(document.diagnosis.findings, with_remarks=True)
    question = [section for section in of_compile.document_sections(document) if section.slug in ASKED]
    return ShortAnswer(
        named(document.target),
        _figure(document),
        bound=_times(report),
        alerts=document.over_budget,
        fixes=[*meant, *_breaks(report, meant)],
        whole=asked.whole_of(question[0]) if question else _phases(report),
        trust=_trust(report),
        improve=trust.again(document, "--budget", "60s") if report.cost.outcome in {"", "undecided"} else "",
    )


def _figure(document: CompileDocument) -> str:
    """Graphs, breaks and recompilations, and what compiling brings; of what did not compile, why."""
    report = document.report
    if not report.graphs or document.divergence:
        return of_compile.document_headline(document)
    roots = sum(not graph_break.chained for graph_break in report.breaks)
    said = [
        counted(report.graphs, "graph"),
        counted(roots, "break"),
        counted(len(report.recompiles), "recompilation"),
    ]
    return " · ".join(part for part in [*said, compile_costs.effect(report.cost)] if part)


def _times(report: CompileReport) -> str:
    """The step compiled and eager, and what compiling took."""
    cost, said = report.cost, []
    if cost.steady_s is not None and cost.eager_steady_s is not None:
        said = [f"step {format_seconds(cost.steady_s)} compiled, {format_seconds(cost.eager_steady_s)} eager"]
    return " · ".join([*said, of_compile.subtitle(report)])


def _breaks(report: CompileReport, given: Sequence[Fix]) -> list[Fix]:
    """Root causes that no finding tells."""
    known = {fix.place.rpartition(" in ")[0] or fix.place for fix in given}
    roots = [graph_break for graph_break in report.breaks if not graph_break.chained]
    cards = compile_breaks.cards(report)[: len(roots)]
    return [
        Fix(
            name="graph break",
            sentence=card.title,
            place=named(card.place),
            write=next((rewrite.rewrite for rewrite in card.rewrites if rewrite.rewrite), ""),
        )
        for card in cards
        if named(card.place).partition(" ")[0] not in known
    ]


def _phases(report: CompileReport) -> Whole | None:
    spent = report.cost.phases_s
    return parts.of_time(list(spent.items()), sum(spent.values()), TITLE) if spent else None


def _trust(report: CompileReport) -> str:
    cost = report.cost
    said = [f"compiler's caches {report.cache.state}"]
    if report.incomplete:
        said.append("what was compiled before is missing")
    if cost.outcome == "undecided":
        said.append("too few paired steps to tell which is faster")
    return " · ".join(said)
