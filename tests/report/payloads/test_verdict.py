"""What is drawn of verdicts equals what was decided."""

from __future__ import annotations

import math
import statistics

import msgspec
import pytest

from pyrometer.report.attachments import Attachments
from pyrometer.report.payloads.verdict import blocks, verdict_view


@pytest.mark.parametrize("outcome", ["faster", "slower", "same", "undecided"])
def test_a_row_says_what_the_verdict_says(documents, outcome):
    v = documents[f"verdict_{outcome}"].verdict
    view = verdict_view([v])
    (comparison,) = view.comparisons
    assert comparison.outcome == comparison.rows[0].reads == outcome
    assert (comparison.rows[0].ratio, comparison.rows[0].low, comparison.rows[0].high) == (
        v.ratio,
        v.ci_low,
        v.ci_high,
    )
    assert comparison.blocks == pytest.approx([math.exp(value) for value in v.log_ratios], rel=1e-5)
    assert comparison.running[-1] == pytest.approx(statistics.median(comparison.blocks), rel=1e-5)
    assert comparison.noun == "block"
    assert view.axis.low < min(v.ci_low, 1 - v.margin)
    assert view.axis.high > max(v.ci_high, 1 + v.margin)
    assert view.axis.log


def test_tails_and_other_clocks_are_rows_that_decided_nothing(documents):
    v = msgspec.structs.replace(documents["verdict_slower"].verdict, wall_ratio=1.05, isolated_ratio=1.07)
    rows = verdict_view([v]).comparisons[0].rows
    assert [(row.name, row.reads) for row in rows] == [
        ("step", "slower"),
        ("wall time", ""),
        ("alone", ""),
        ("P95", ""),
    ]
    assert rows[1].low is None


def test_a_verdict_without_blocks_or_bounds(documents):
    v = msgspec.structs.replace(
        documents["verdict_undecided"].verdict, ci_low=None, ci_high=None, log_ratios=[]
    )
    (comparison,) = verdict_view([v]).comparisons
    assert comparison.blocks == comparison.running == []
    assert comparison.rows[0].low is None
    assert "not bounded" in comparison.rows[0].words


def test_several_verdicts_share_an_axis(documents):
    verdicts = [documents[f"verdict_{outcome}"].verdict for outcome in ("faster", "slower")]
    view = verdict_view(verdicts)
    assert view.axis.low == min(comparison.axis.low for comparison in view.comparisons)
    assert view.axis.high == max(comparison.axis.high for comparison in view.comparisons)


def test_cells_of_a_matrix_are_compared_by_their_settings(documents):
    (block,) = blocks(documents["matrix"], Attachments())
    comparisons = msgspec.json.decode(block.content)["comparisons"]
    assert [comparison["candidate"] for comparison in comparisons] == [
        cell.label for cell in documents["matrix"].matrix.cells if cell.verdict is not None
    ]
    assert list(blocks(documents["steady"], Attachments())) == []


def test_fresh_processes_are_called_so(documents):
    assert verdict_view([documents["verdict_processes"].verdict]).comparisons[0].noun == "process"
