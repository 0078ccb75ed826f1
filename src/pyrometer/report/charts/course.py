"""The course of a test: an estimate with its interval, as observations came."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.report.charts.plane import Plane, Ranged
from pyrometer.report.charts.scale import fit, plain
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
    ends = [end for one in drawn for end in (_within(one.value), one.low, one.high)]
    up = fit([1.0, content.margin, *ends], pad=0.06, log_above=4.0)
    plane = Plane(up, plain, TOP, BOTTOM)
    levels = [plane.level(1.0, "one"), plane.level(_within(content.margin), "marker")]
    shown = [Ranged(one.x, *map(_within, one[1:])) for one in drawn]
    parts = [*levels, plane.curve(shown), *_stages(content.points, last, plane)]
    final = drawn[-1]
    said = f"{content.metric}: {final.value:.3g} ({final.low:.3g} to {final.high:.3g}) after {last:,} observations of the new version"
    return plane.chart(said, parts)


def _stages(points: Sequence[Point], last: int, plane: Plane) -> list[Markup]:
    parts: list[Markup] = []
    changes = [(0, points[0].share)] + [(b.num, b.share) for a, b in pairwise(points) if a.share != b.share]
    for num, share in changes:
        x = num / last
        if num:
            parts.append(plane.upright(x, "marker"))
        parts.append(plane.below(x, f"{100 * share:.3g} %"))
    return parts


def _within(value: float) -> float:
    return min(max(value, 1 / MOST), MOST)
