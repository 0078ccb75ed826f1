"""A curve over the whole width of a chart, with the band in which its values may lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.report.charts.svg import tag


class Ranged(NamedTuple):
    """A value at a share of the width, and the ends of its range."""

    x: float
    value: float
    low: float
    high: float


def curve(
    points: Sequence[Ranged], place: Callable[[float], float], height: float, *, band: bool = True
) -> Markup:
    """Draw the values, and the band of their ranges.

    Args:
        points: from left to right.
        place: of a value, in pixels from the top.
        height: of the picture; its width is stretched to that of the chart, since polylines know no percentages.
        band: false where values are exact.
    """
    ends = [(point.x, point.high) for point in points] + [(point.x, point.low) for point in reversed(points)]
    drawn = [tag("polygon", cls="interval", points=_path(ends, place))] if band else []
    middle = _path([(point.x, point.value) for point in points], place)
    drawn.append(tag("polyline", cls="series", points=middle, vector_effect="non-scaling-stroke"))
    return tag(
        "svg",
        *drawn,
        viewBox=f"0 0 1000 {height:g}",
        preserveAspectRatio="none",
        width="100%",
        height=height,
    )


def _path(points: Sequence[tuple[float, float]], place: Callable[[float], float]) -> str:
    return " ".join(f"{x * 1000:.1f},{place(value):.1f}" for x, value in points)
