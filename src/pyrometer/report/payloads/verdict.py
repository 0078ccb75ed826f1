"""What a page draws of verdicts: each ratio with its interval, the margin, and the blocks they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
import numpy as np

from pyrometer.bench.comparison.verdict import Verdict, sentence
from pyrometer.quantity import Ratio, Seconds
from pyrometer.record import Record, doc
from pyrometer.report.attachments import Attachments
from pyrometer.report.charts.forest import ratio_scale
from pyrometer.report.charts.scale import Scale
from pyrometer.report.documents import BenchDocument, Document
from pyrometer.report.facts.verdict import METRIC_NAMES, ratio_words
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.report.payloads.measurement import AxisView, axis_view
from pyrometer.report.payloads.series import rounded
from pyrometer.report.target_documents import MatrixDocument


class RatioRow(Record, frozen=True, kw_only=True):
    """One ratio with its interval."""

    name: Annotated[str, doc("step, wall time, alone, P95")]
    ratio: Ratio
    low: Annotated[Ratio | None, doc("null where it was not bounded")]
    high: Ratio | None
    words: str
    reads: Annotated[str, doc("faster, slower, same or undecided; empty for what decided nothing")]


class ComparisonView(Record, frozen=True, kw_only=True):
    """One verdict, ready to be drawn."""

    baseline: str
    candidate: str
    outcome: str
    sentence: str
    metric: str
    margin: float
    smallest_effect: float
    confidence: float
    baseline_s: Seconds | None
    candidate_s: Seconds | None
    rows: Annotated[list[RatioRow], doc("the one that decided first")]
    noun: Annotated[str, doc("what was counted: block or process")]
    blocks: Annotated[list[Ratio], doc("candidate over baseline, in the order they were taken")]
    running: Annotated[list[Ratio], doc("median of the blocks up to each")]
    axis: AxisView
    axis_of_blocks: Annotated[AxisView, doc("may leave out the outermost 2 % of the blocks")]


class VerdictView(Record, frozen=True, kw_only=True):
    """Verdicts that are looked at together, on one axis."""

    comparisons: list[ComparisonView]
    axis: Annotated[AxisView, doc("of all of them")]


def blocks(document: Document, attachments: Attachments) -> Iterator[Block]:
    """One block for all verdicts of the document: of a comparison, or of the cells of a matrix."""
    del attachments
    verdicts = _verdicts(document)
    if verdicts:
        yield block_of("verdict", verdict_view(verdicts))


def _verdicts(document: Document) -> list[Verdict]:
    if isinstance(document, BenchDocument):
        return [document.verdict] if document.verdict is not None else []
    if isinstance(document, MatrixDocument):
        judged = ((cell.label, cell.verdict) for cell in document.matrix.cells)
        return [msgspec.structs.replace(v, candidate=name) for name, v in judged if v is not None]
    return []


def verdict_view(verdicts: Sequence[Verdict]) -> VerdictView:
    """Verdicts beside each other: of the cells of a matrix, or of the phases of two runs.

    Args:
        verdicts: at least one.
    """
    scales = [_scale_of_rows(verdict) for verdict in verdicts]
    whole = Scale(min(scale.low for scale in scales), max(scale.high for scale in scales), log=True)
    return VerdictView(comparisons=[_comparison(verdict) for verdict in verdicts], axis=axis_view(whole))


def _comparison(v: Verdict) -> ComparisonView:
    found = [math.exp(value) for value in v.log_ratios]
    running = [float(np.median(found[: end + 1])) for end in range(len(found))]
    return ComparisonView(
        baseline=v.baseline,
        candidate=v.candidate,
        outcome=v.outcome,
        sentence=sentence(v),
        metric=METRIC_NAMES[v.metric],
        margin=v.margin,
        smallest_effect=v.smallest_effect,
        confidence=v.confidence,
        baseline_s=v.baseline_s,
        candidate_s=v.candidate_s,
        rows=_rows(v),
        noun="block" if v.num_processes is None else "process",
        blocks=rounded(found),
        running=rounded(running),
        axis=axis_view(_scale_of_rows(v)),
        axis_of_blocks=axis_view(ratio_scale(v)),
    )


def _rows(v: Verdict) -> list[RatioRow]:
    decided = _row("step", v.ratio, v.ci_low, v.ci_high, v.outcome)
    beside = [("wall time", v.wall_ratio), ("alone", v.isolated_ratio)]
    rows = [decided, *(_row(name, ratio, None, None) for name, ratio in beside if ratio is not None)]
    return rows + [
        _row(f"P{tail.quantile * 100:g}", tail.ratio, tail.ci_low, tail.ci_high) for tail in v.tails
    ]


def _row(name: str, ratio: float, low: float | None, high: float | None, reads: str = "") -> RatioRow:
    return RatioRow(
        name=name, ratio=ratio, low=low, high=high, words=ratio_words(ratio, low, high), reads=reads
    )


def _scale_of_rows(v: Verdict) -> Scale:
    """The axis of the ratios without the blocks, by logarithm."""
    values = [1 - v.margin * 1.4, 1 + v.margin * 1.4]
    for row in _rows(v):
        values += [end for end in (row.ratio, row.low, row.high) if end is not None]
    inside = [value for value in values if 0 < value < math.inf]
    air = (max(inside) / min(inside)) ** 0.04
    return Scale(min(inside) / air, max(inside) * air, log=True)
