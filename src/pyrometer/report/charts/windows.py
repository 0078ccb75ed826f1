"""The median step of each window of a long run."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pyrometer.bench.stability import Window
from pyrometer.quantity import format_seconds
from pyrometer.report.charts.scale import SECONDS, Scale, fit
from pyrometer.report.charts.svg import AXIS_HEIGHT, at, chart, tag, x_axis, y_axis

TOP = 12.0
BOTTOM = 168.0


def window_line(windows: Sequence[Window]) -> Markup | None:
    """Draw one dot per window, with the axis of times from zero; `None` for fewer than two windows."""
    if len(windows) < 2:
        return None
    across = Scale(0.0, windows[-1].end_s)
    up = Scale(0.0, fit([window.p50_s for window in windows], pad=0.15).high)
    axis, lines = y_axis(up, SECONDS, TOP, BOTTOM, BOTTOM + AXIS_HEIGHT)
    dots = [
        tag(
            "circle",
            cls="sample",
            cx=at(across((window.start_s + window.end_s) / 2)),
            cy=BOTTOM - up(window.p50_s) * (BOTTOM - TOP),
            r=3,
        )
        for window in windows
    ]
    medians = [window.p50_s for window in windows]
    label = f"Median step of {len(windows)} windows, from {format_seconds(min(medians))} to {format_seconds(max(medians))}"
    return chart(label, [*lines, *x_axis(across, SECONDS, BOTTOM, BOTTOM), *dots], BOTTOM + AXIS_HEIGHT, axis)
