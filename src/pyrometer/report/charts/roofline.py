"""The roofline: what operators reach, under what the machine allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.hardware.roofline import attainable
from pyrometer.quantity import format_rate
from pyrometer.report.charts.plane import Plane
from pyrometer.report.charts.scale import Scale, plain
from pyrometer.report.charts.svg import at, tag, x_axis

TOP = 14.0
BOTTOM = 230.0


class Point(NamedTuple):
    """One operator."""

    name: str
    intensity: float  # FLOP per byte
    flop_per_s: float
    share: float  # of the time, for its size


class Roof(NamedTuple):
    """The machine."""

    flop_per_s: float
    bytes_per_s: float


def roofline(points: Sequence[Point], roof: Roof | None) -> Markup | None:
    """Draw operators on logarithmic axes; `None` when none has arithmetic."""
    drawn = [point for point in points if point.intensity > 0 and point.flop_per_s > 0]
    if not drawn:
        return None
    across = _scale(
        [point.intensity for point in drawn] + ([roof.flop_per_s / roof.bytes_per_s] if roof else [])
    )
    up = _scale([point.flop_per_s for point in drawn] + ([roof.flop_per_s] if roof else []))
    plane = Plane(up, _flop_unit, TOP, BOTTOM)
    parts = x_axis(across, plain, BOTTOM, BOTTOM)
    if roof is not None:
        parts += _roof(roof, across, plane)
    for point in sorted(drawn, key=lambda point: -point.share):
        title = f"{point.name}: {point.intensity:.3g} FLOP/byte, {format_rate(point.flop_per_s, 'FLOP/s')}"
        parts.append(
            tag(
                "circle",
                tag("title", title),
                cls="sample",
                cx=at(across(point.intensity)),
                cy=plane.y(point.flop_per_s),
                r=3 + 14 * math.sqrt(min(point.share, 1.0)),
            )
        )
    for point in sorted(drawn, key=lambda point: -point.share)[:3]:
        share = across(point.intensity)
        side = {"text_anchor": "end", "dx": -12} if share > 0.6 else {"text_anchor": "start", "dx": 12}
        y = plane.y(point.flop_per_s) + 4
        parts.append(tag("text", point.name, cls="label", x=at(share), y=y, **side))
    return plane.chart(f"Roofline of {len(drawn)} operators", parts)


def _roof(roof: Roof, across: Scale, plane: Plane) -> list[Markup]:
    ridge = min(max(roof.flop_per_s / roof.bytes_per_s, across.low), across.high)
    corners = [across.low, ridge, across.high]
    heights = [attainable(x, roof.flop_per_s, roof.bytes_per_s) for x in corners]
    return [
        tag("line", cls="one", x1=at(across(x1)), x2=at(across(x2)), y1=plane.y(y1), y2=plane.y(y2))
        for x1, x2, y1, y2 in zip(corners, corners[1:], heights, heights[1:], strict=False)
    ]


def _scale(values: list[float]) -> Scale:
    return Scale(min(values) / 2, max(values) * 2, log=True)


def _flop_unit(value: float) -> tuple[float, str]:
    for size, name in ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s")):
        if value >= size:
            return size, name
    return 1.0, "FLOP/s"
