"""The plane of a chart with a vertical axis: where values stand on it, its levels and curves, and the frame around it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.report.charts.scale import Scale, Unit
from pyrometer.report.charts.svg import AXIS_HEIGHT, anchor, at, chart, tag, y_axis


class Ranged(NamedTuple):
    """A value at a share of the width, and the ends of its range."""

    x: float
    value: float
    low: float
    high: float


class Plane(NamedTuple):
    """Values by `up`, between `top` and `bottom` in pixels."""

    up: Scale
    unit: Unit
    top: float
    bottom: float

    def y(self, value: float) -> float:
        """Where a value stands, in pixels from the top."""
        return self.bottom - self.up(value) * (self.bottom - self.top)

    def level(self, value: float, cls: str) -> Markup:
        """A line across at a value."""
        y = self.y(value)
        return tag("line", cls=cls, x1="0%", x2="100%", y1=y, y2=y)

    def upright(self, x: float, cls: str) -> Markup:
        """A line from top to bottom at a share of the width."""
        return tag("line", cls=cls, x1=at(x), x2=at(x), y1=self.top, y2=self.bottom)

    def below(self, x: float, text: str) -> Markup:
        """A label below the plane."""
        return tag("text", text, cls="tick", x=at(x), y=self.bottom + 17.0, text_anchor=anchor(x))

    def stretched(self, *marks: Markup) -> Markup:
        """What knows no percentages, such as polylines: drawn 1000 wide, and stretched to the width of the chart."""
        box = f"0 0 1000 {self.bottom:g}"
        return tag("svg", *marks, viewBox=box, preserveAspectRatio="none", width="100%", height=self.bottom)

    def curve(self, points: Sequence[Ranged], *, band: bool = True) -> Markup:
        """Draw values from left to right, and the band of their ranges unless they are exact."""
        ends = [(point.x, point.high) for point in points]
        ends += [(point.x, point.low) for point in reversed(points)]
        drawn = [tag("polygon", cls="interval", points=self.path(ends))] if band else []
        middle = self.path([(point.x, point.value) for point in points])
        line = tag("polyline", cls="series", points=middle, vector_effect="non-scaling-stroke")
        return self.stretched(*drawn, line)

    def path(self, points: Iterable[tuple[float, float]], joint: str = " ") -> str:
        """Shares of the width with values, as the corners of a line that is stretched."""
        return joint.join(f"{x * 1000:.1f},{self.y(value):.1f}" for x, value in points)

    def chart(self, label: str, parts: Iterable[Markup], *, ground: Iterable[Markup] = ()) -> Markup:
        """The frame with the vertical axis; what is `ground` lies below the lines of the grid."""
        height = self.bottom + AXIS_HEIGHT
        axis, lines = y_axis(self.up, self.unit, self.top, self.bottom, height)
        return chart(label, [*ground, *lines, *parts], height, axis)
