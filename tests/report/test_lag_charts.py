"""Drawings of jobs: who is late in which step, and bubbles against what the schedule costs."""

from __future__ import annotations

from pyrometer.report.charts.lags import lag_map, stage_bars
from pyrometer.trace.jobs.job import LagMap, Pipeline, PipelineStage


def test_a_cell_per_late_rank_and_step():
    lags = LagMap(ranks=[0, 3], steps=["a", "b", "c"], lag_ns=[[0, 10, None], [1_000_000, 2_000_000, 0]])
    drawn = str(lag_map(lags))
    assert drawn.count("<rect") == 2  # 10 ns beside 2 ms are nothing
    assert "rank 3, b: 2.00 ms" in drawn
    assert "most on rank 3" in drawn
    assert 'fill-opacity="1.00"' in drawn


def test_nothing_is_drawn_where_nobody_is_late():
    assert lag_map(LagMap(ranks=[0, 1], steps=["a"], lag_ns=[[0], [None]])) is None
    assert stage_bars([]) is None


def test_a_bar_per_stage_and_a_line_for_the_schedule():
    stages = [PipelineStage(stage=s, rank=s, bubble=0.2 + 0.1 * s, compute_ns=1, wait_ns=0) for s in range(2)]
    pipeline = Pipeline(
        ranks=[0, 1], num_stages=2, num_microbatches=4, num_steps=3, step_ns=100, stages=stages,
        bubble=0.25, theoretical_bubble=0.2,
    )  # fmt: skip
    drawn = str(stage_bars([pipeline]))
    assert drawn.count("<rect") == 2
    assert drawn.count("marker median") == 2
    assert "stage 1 30.0 %" in drawn
