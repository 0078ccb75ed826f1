"""Step time over the number of ranks, with its range, and what takes it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from markupsafe import Markup

from pyrometer.quantity import format_seconds
from pyrometer.report.charts.curve import Ranged, curve
from pyrometer.report.charts.scale import SECONDS, Scale, fit
from pyrometer.report.charts.svg import AXIS_HEIGHT, anchor, at, chart, tag, y_axis
from pyrometer.scaling.record import ScalePrediction

TOP, BOTTOM = 18.0, 220.0


def scaling_line(predictions: Sequence[ScalePrediction]) -> Markup | None:
    """The step at each number of ranks, on a logarithmic axis; `None` of fewer than two numbers."""
    if len(predictions) < 2:
        return None
    across = Scale(predictions[0].ranks, predictions[-1].ranks, log=True)
    up = fit([0.0, *(one.high_s for one in predictions)], pad=0.08)
    axis, lines = y_axis(up, SECONDS, TOP, BOTTOM, BOTTOM + AXIS_HEIGHT)

    stretched = curve(
        [Ranged(across(one.ranks), one.step_s, one.low_s, one.high_s) for one in predictions],
        partial(_y, up),
        BOTTOM,
    )
    alone = predictions[0].compute_s
    marks = [
        tag("line", cls="marker", x1="0%", x2="100%", y1=_y(up, alone), y2=_y(up, alone)),
        tag("text", f"computing {format_seconds(alone)}", cls="label", x=at(0.0), y=_y(up, alone) + 14),
    ]
    ends = [
        tag(
            "text",
            f"{one.ranks:,}",
            cls="tick",
            x=at(across(one.ranks)),
            y=BOTTOM + 17,
            text_anchor=anchor(across(one.ranks)),
        )
        for one in predictions
    ]
    said = ", ".join(f"{one.ranks} ranks {format_seconds(one.step_s)}" for one in predictions)
    return chart(
        f"A step by number of ranks: {said}",
        [*lines, stretched, *marks, *ends],
        BOTTOM + AXIS_HEIGHT,
        axis,
    )


def _y(scale: Scale, value: float) -> float:
    return BOTTOM - scale(value) * (BOTTOM - TOP)
