"""Step time over the number of ranks, with its range, and what takes it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pyrometer.quantity import format_seconds
from pyrometer.report.charts.plane import Plane, Ranged
from pyrometer.report.charts.scale import SECONDS, Scale, fit
from pyrometer.report.charts.svg import at, tag
from pyrometer.scaling.record import ScalePrediction

TOP, BOTTOM = 18.0, 220.0


def scaling_line(predictions: Sequence[ScalePrediction]) -> Markup | None:
    """The step at each number of ranks, on a logarithmic axis; `None` of fewer than two numbers."""
    if len(predictions) < 2:
        return None
    across = Scale(predictions[0].ranks, predictions[-1].ranks, log=True)
    up = fit([0.0, *(one.high_s for one in predictions)], pad=0.08)
    plane = Plane(up, SECONDS, TOP, BOTTOM)
    points = [Ranged(across(one.ranks), one.step_s, one.low_s, one.high_s) for one in predictions]
    alone = predictions[0].compute_s
    computing = f"computing {format_seconds(alone)}"
    marks = [
        plane.level(alone, "marker"),
        tag("text", computing, cls="label", x=at(0.0), y=plane.y(alone) + 14),
    ]
    ends = [plane.below(across(one.ranks), f"{one.ranks:,}") for one in predictions]
    said = ", ".join(f"{one.ranks} ranks {format_seconds(one.step_s)}" for one in predictions)
    return plane.chart(f"A step by number of ranks: {said}", [plane.curve(points), *marks, *ends])
