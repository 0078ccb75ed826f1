"""The median step of each window of a long run."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pyrometer.bench.record import Window
from pyrometer.quantity import format_seconds
from pyrometer.report.charts.plane import Plane
from pyrometer.report.charts.scale import SECONDS, Scale, fit
from pyrometer.report.charts.svg import at, tag, x_axis

TOP = 12.0
BOTTOM = 168.0


def window_line(windows: Sequence[Window]) -> Markup | None:
    """Draw one dot per window, with the axis of times from zero; `None` for fewer than two windows."""
    if len(windows) < 2:
        return None
    across = Scale(0.0, windows[-1].end_s)
    up = Scale(0.0, fit([window.p50_s for window in windows], pad=0.15).high)
    plane = Plane(up, SECONDS, TOP, BOTTOM)
    places = [(at(across((window.start_s + window.end_s) / 2)), plane.y(window.p50_s)) for window in windows]
    dots = [tag("circle", cls="sample", cx=x, cy=y, r=3) for x, y in places]
    medians = [window.p50_s for window in windows]
    label = f"Median step of {len(windows)} windows, from {format_seconds(min(medians))} to {format_seconds(max(medians))}"
    return plane.chart(label, [*x_axis(across, SECONDS, BOTTOM, BOTTOM), *dots])
