"""Short answers of a bench: a step, two in turn, cold starts, a long run, or many configurations."""

from __future__ import annotations

from pyrometer.bench.comparison.verdict import Verdict, sentence
from pyrometer.bench.matrix.cell import settings_label
from pyrometer.bench.record import ColdStarts, Soak
from pyrometer.quantity import counted, format_rate, format_seconds
from pyrometer.report.answer import trust
from pyrometer.report.answer.measured import named, of_step, tail
from pyrometer.report.answer.short import Part, ShortAnswer, Whole
from pyrometer.report.documents import BenchDocument
from pyrometer.report.facts import cold as cold_facts
from pyrometer.report.facts import matrix as matrix_facts
from pyrometer.report.facts import soak as soak_facts
from pyrometer.report.facts.layout import percent
from pyrometer.report.facts.verdict import METRIC_NAMES
from pyrometer.report.target_documents import MatrixDocument

MOST_CELLS = 8
"""Configurations of a matrix that have a row."""


def of_document(document: BenchDocument) -> ShortAnswer:
    """What `bench` timed: a step, two in turn, cold starts, or a long run."""
    if document.verdict is not None:
        return _of_verdict(document, document.verdict)
    answer = of_step(document)
    m = document.evidence.measurement
    if m is not None:
        answer = answer._replace(bound=tail(m))
    if document.cold is not None:
        return _of_cold(answer, document.cold)
    return answer if document.soak is None else _of_soak(answer, document.soak)


def _of_verdict(document: BenchDocument, verdict: Verdict) -> ShortAnswer:
    """Which of two is faster, and how long each takes."""
    longest = max(verdict.baseline_s or 0.0, verdict.candidate_s or 0.0)
    sides = [
        Part(name, format_seconds(time_s), time_s / longest if longest and time_s is not None else None)
        for name, time_s in ((verdict.baseline, verdict.baseline_s), (verdict.candidate, verdict.candidate_s))
    ]
    limits = trust.limiting(verdict.caveats)
    blocks = counted(verdict.num_blocks, "paired block")
    processes = (
        "" if verdict.num_processes is None else f" in {counted(verdict.num_processes, 'fresh process')}"
    )
    more = trust.command(verdict.caveats)
    if verdict.outcome == "undecided" and verdict.needed_s is not None:
        more = trust.again(document, "--budget", f"{verdict.needed_s + verdict.elapsed_s:.0f}s")
    return ShortAnswer(
        f"{verdict.candidate} against {verdict.baseline}",
        sentence(verdict),
        bound=f"within {percent(verdict.margin)} counts as the same · by {METRIC_NAMES[verdict.metric]}",
        whole=Whole("A step of each", "", sides),
        trust=" · ".join([f"{blocks}{processes}, in turn", *limits]),
        improve=more,
        tone=verdict.outcome,
    )


def _of_cold(answer: ShortAnswer, starts: ColdStarts) -> ShortAnswer:
    table = cold_facts.stage_table(starts)
    rows = [Part(row[0], row[1], note=row[2] if len(row) > 2 else "") for row in table.rows]
    return answer._replace(
        bound=cold_facts.headline(starts), whole=Whole("The first start, and later ones", "", rows)
    )


def _of_soak(answer: ShortAnswer, soak: Soak) -> ShortAnswer:
    table = soak_facts.drift_table(soak)
    rows = [Part(row[0], row[1], note=f"{row[2]} per hour, {row[4]}") for row in table.rows]
    limits = trust.limiting(soak.caveats)
    return answer._replace(
        bound=soak_facts.headline(soak),
        whole=Whole("Drift over the run", "", rows),
        trust=" · ".join(limits) or answer.trust,
        improve=trust.command(soak.caveats) if limits else answer.improve,
    )


def of_matrix(document: MatrixDocument) -> ShortAnswer:
    """The configuration to use, and the fastest beside it."""
    matrix = document.matrix
    timed = [cell for cell in matrix.cells if cell.measurement is not None and cell.measurement.throughput]
    timed.sort(key=lambda cell: -cell.measurement.throughput if cell.measurement is not None else 0.0)
    most = timed[0].measurement.throughput if timed and timed[0].measurement is not None else 1.0
    rows = [
        Part(
            settings_label(cell.settings),
            format_rate(cell.measurement.throughput, f"{cell.measurement.unit}/s"),
            cell.measurement.throughput / most,
        )
        for cell in timed[:MOST_CELLS]
        if cell.measurement is not None
    ]
    left = len(matrix.cells) - len(timed)
    notes = [f"{left} of {len(matrix.cells)} could not be timed"] if left else []
    return ShortAnswer(
        named(document.target),
        matrix_facts.headline(matrix),
        bound=matrix_facts.subtitle(matrix),
        whole=Whole("The fastest configurations", "", rows) if rows else None,
        trust=" · ".join([f"{counted(len(timed), 'configuration')} timed", *notes]),
        improve=trust.again(document, "--budget", "120s"),
    )
