"""Ranks by steps, the darker the later a rank came; and the stages of pipelines, with what their schedule costs."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pyrometer.quantity import format_percent, format_seconds
from pyrometer.report.charts.scale import Scale, per_cent
from pyrometer.report.charts.svg import AXIS_HEIGHT, at, chart, tag, x_axis
from pyrometer.trace.jobs.job import LagMap, Pipeline

CELL_HEIGHT = 14.0
FAINTEST = 0.03
"""Of the largest lag: what is less is not drawn."""

ROW_HEIGHT, BAR_HEIGHT = 26.0, 17.0
MOST_STAGES = 32


def lag_map(lags: LagMap) -> Markup | None:
    """A row per rank and a column per step; `None` where no rank came late."""
    most = max((lag or 0 for row in lags.lag_ns for lag in row), default=0)
    if not most:
        return None
    width = 1 / len(lags.steps)
    marks = [
        _cell(
            f"rank {rank}, {step}: {format_seconds(lag * 1e-9)}",
            row * CELL_HEIGHT,
            column * width,
            width,
            lag / most,
        )
        for row, (rank, own) in enumerate(zip(lags.ranks, lags.lag_ns, strict=True))
        for column, (step, lag) in enumerate(zip(lags.steps, own, strict=True))
        if lag is not None and lag >= FAINTEST * most
    ]
    bottom = len(lags.ranks) * CELL_HEIGHT
    ground = tag("line", cls="axis", x1="0%", x2="100%", y1=bottom, y2=bottom)
    ends = [(lags.steps[0], 0.0, "start"), (lags.steps[-1], 1.0, "end")][: len(lags.steps)]
    below = [
        tag("text", name, cls="tick", x=at(where), y=bottom + 17, text_anchor=side)
        for name, where, side in ends
    ]
    latest = max(zip(lags.ranks, lags.lag_ns, strict=True), key=lambda one: sum(lag or 0 for lag in one[1]))[
        0
    ]
    said = f"Lag of each rank in each step, up to {format_seconds(most * 1e-9)}; most on rank {latest}"
    return chart(
        said,
        [*marks, ground, *below],
        bottom + AXIS_HEIGHT,
        _names([f"rank {rank}" for rank in lags.ranks], CELL_HEIGHT, bottom),
    )


def _cell(title: str, y: float, x: float, width: float, share: float) -> Markup:
    box = {"x": at(x), "width": at(width), "y": y, "height": CELL_HEIGHT}
    return tag("rect", tag("title", title), cls="bar", fill_opacity=0.08 + 0.92 * share, **box)


def stage_bars(pipelines: Sequence[Pipeline]) -> Markup | None:
    """The share of a step in which each stage computes nothing, and a line where the schedule alone leaves it."""
    rows = [(pipeline, stage) for pipeline in pipelines for stage in pipeline.stages][:MOST_STAGES]
    if not rows:
        return None
    scale = Scale(
        0.0, max(0.05, *(max(stage.bubble, pipeline.theoretical_bubble) for pipeline, stage in rows)) * 1.05
    )
    marks = []
    for number, (pipeline, stage) in enumerate(rows):
        y, theory = number * ROW_HEIGHT, scale(pipeline.theoretical_bubble)
        title = tag("title", f"stage {stage.stage}: {format_percent(stage.bubble)}")
        box = {"x": "0%", "width": at(scale(stage.bubble)), "y": y, "height": BAR_HEIGHT}
        marks += [
            tag("rect", title, cls="bar", **box),
            tag("line", cls="marker median", x1=at(theory), x2=at(theory), y1=y - 3, y2=y + BAR_HEIGHT + 3),
        ]
    bottom = len(rows) * ROW_HEIGHT
    said = ", ".join(f"stage {stage.stage} {format_percent(stage.bubble)}" for _, stage in rows)
    beside = _names([f"stage {stage.stage}" for _, stage in rows], ROW_HEIGHT, bottom)
    return chart(
        f"Bubble of each stage: {said}",
        [*x_axis(scale, per_cent, 0.0, bottom), *marks],
        bottom + AXIS_HEIGHT,
        beside,
    )


def _names(names: Sequence[str], height: float, bottom: float) -> Markup:
    texts = [
        tag("text", name, cls="tick", x=62, y=row * height + min(height, 20) - 4, text_anchor="end")
        for row, name in enumerate(names)
    ]
    return tag("svg", *texts, cls="y-axis", width=70, height=bottom + AXIS_HEIGHT, aria_hidden="true")
