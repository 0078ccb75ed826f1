"""A trend in the height of a line of text."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pyrometer.quantity import format_seconds
from pyrometer.report.charts.svg import tag
from pyrometer.store.run import RunSummary

WIDTH, HEIGHT, EDGE = 84.0, 22.0, 3.0
FLATTEST = 0.2
"""Share of its middle that the axis spans at least, so that noise of a per cent does not look like a mountain."""


def spark(runs: Sequence[RunSummary]) -> Markup:
    """The medians of some runs, the oldest first, as a line that ends in a dot; nothing for fewer than two."""
    medians = [run.median_s for run in runs if run.median_s is not None]
    if len(medians) < 2:
        return Markup()
    low, high = min(medians), max(medians)
    middle = (low + high) / 2
    span = max(high - low, FLATTEST * middle) or 1.0
    step = (WIDTH - 2 * EDGE) / (len(medians) - 1)
    points = [
        (EDGE + place * step, HEIGHT / 2 - (value - middle) / span * (HEIGHT - 2 * EDGE))
        for place, value in enumerate(medians)
    ]
    label = f"{len(medians)} runs, from {format_seconds(medians[0])} to {format_seconds(medians[-1])}"
    line = tag("polyline", cls="series", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points))
    end = tag("circle", cls="now", cx=points[-1][0], cy=points[-1][1], r=2.5)
    return tag(
        "svg", tag("title", label), line, end,
        cls="spark", role="img", aria_label=label, width=WIDTH, height=HEIGHT, viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
    )  # fmt: skip
