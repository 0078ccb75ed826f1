"""The course of a test: an estimate with its interval, as observations came."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.report.charts.curve import Ranged, curve
from pyrometer.report.charts.scale import Scale, fit, plain
from pyrometer.report.charts.svg import AXIS_HEIGHT, anchor, at, chart, tag, y_axis
from pyrometer.rollout.state import Point

TOP = 14.0
BOTTOM = 134.0
MOST = 20.0
"""Ends of intervals beyond this factor leave the drawing: early ones know nothing."""


class Course(NamedTuple):
    """One metric over a rollout."""

    metric: str
    points: Sequence[Point]
    margin: float


def course(content: Course) -> Markup | None:
    """Draw it; `None` before there are two estimates."""
    last = max(content.points[-1].num, 1) if content.points else 1
    drawn = [
        Ranged(
            point.num / last, estimate, max(low or 0.0, 1 / MOST), min(MOST if high is None else high, MOST)
        )
        for point in content.points
        for estimate, low, high, _ in [point.tests.get(content.metric, (None, None, None, None))]
        if estimate is not None and estimate > 0
    ]
    if len(drawn) < 2:
        return None
    ends = [end for one in drawn for end in (min(max(one.value, 1 / MOST), MOST), one.low, one.high)]
    up = fit([1.0, content.margin, *ends], pad=0.06, log_above=4.0)
    axis, lines = y_axis(up, plain, TOP, BOTTOM, BOTTOM + AXIS_HEIGHT)
    stretched = curve(drawn, partial(_y, up), BOTTOM)
    levels = [_level(up, 1.0, "one"), _level(up, content.margin, "marker")]
    parts = [*lines, *levels, stretched, *_stages(content.points, last)]
    final = drawn[-1]
    said = f"{content.metric}: {final.value:.3g} ({final.low:.3g} to {final.high:.3g}) after {last:,} observations of the new version"
    return chart(said, parts, BOTTOM + AXIS_HEIGHT, axis)


def _level(up: Scale, value: float, cls: str) -> Markup:
    y = _y(up, value)
    return tag("line", cls=cls, x1="0%", x2="100%", y1=y, y2=y)


def _stages(points: Sequence[Point], last: int) -> list[Markup]:
    parts: list[Markup] = []
    changes = [(0, points[0].share)] + [(b.num, b.share) for a, b in pairwise(points) if a.share != b.share]
    for num, share in changes:
        x = num / last
        if num:
            parts.append(tag("line", cls="marker", x1=at(x), x2=at(x), y1=TOP, y2=BOTTOM))
        parts.append(
            tag("text", f"{100 * share:.3g} %", cls="tick", x=at(x), y=BOTTOM + 17, text_anchor=anchor(x))
        )
    return parts


def _y(up: Scale, value: float) -> float:
    return BOTTOM - up(min(max(value, 1 / MOST), MOST)) * (BOTTOM - TOP)
