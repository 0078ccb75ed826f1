"""Chained ratios from commit to commit, with their band, and where they change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.guard.history.record import Change, Series
from pyrometer.report.charts.plane import Plane, Ranged
from pyrometer.report.charts.scale import fit
from pyrometer.report.charts.svg import shape

TOP = 14.0
BOTTOM = 134.0
FEWEST = 2


class Trend(NamedTuple):
    """A series, and its changes."""

    series: Series
    changes: Sequence[Change]


def times(value: float) -> tuple[float, str]:  # noqa: ARG001 - a Unit
    """The unit of ratios."""
    return 1.0, "×"


def trend(content: Trend) -> Markup | None:
    """Draw a series; `None` where it has too few commits."""
    points = content.series.points
    if len(points) < FEWEST:
        return None
    up = fit(
        [1.0, *(end for point in points for end in (point.ci_low, point.ci_high))], pad=0.08, log_above=6.0
    )
    plane = Plane(up, times, TOP, BOTTOM)
    across = [index / (len(points) - 1) for index in range(len(points))]
    ranged = [
        Ranged(x, point.chained, point.ci_low, point.ci_high) for x, point in zip(across, points, strict=True)
    ]
    places = {point.head_sha: x for x, point in zip(across, points, strict=True)}
    marks = [mark for change in content.changes for mark in _mark(change, places, content, plane)]
    ends = [plane.below(0.0, points[0].head_sha[:9]), plane.below(1.0, points[-1].head_sha[:9])]
    return plane.chart(_said(content), [plane.level(1.0, "one"), plane.curve(ranged), *marks, *ends])


def _mark(change: Change, places: dict[str, float], content: Trend, plane: Plane) -> list[Markup]:
    x = places.get(change.point.head_sha)
    if x is None:
        return []
    value = next(p.chained for p in content.series.points if p.head_sha == change.point.head_sha)
    tone = "slower" if change.point.is_worse else "faster"
    filled = (
        "M0 -6 L5 0 L0 6 L-5 0 Z"
        if change.state == "proved"
        else "M0 -6 L5 0 L0 6 L-5 0 Z M0 -3 L-2.5 0 L0 3 L2.5 0 Z"
    )
    said = f"{change.point.head_sha[:9]}: {(change.point.ratio - 1) * 100:+.1f} %, {change.state}"
    return [plane.upright(x, "marker"), shape(f"estimate {tone}", filled, x, plane.y(value), said)]


def _said(content: Trend) -> str:
    last = content.series.points[-1].chained
    return (
        f"{content.series.benchmark}, {content.series.metric}: {len(content.series.points)} commits, "
        f"{(last - 1) * 100:+.1f} % since the first, {len(content.changes)} changes"
    )
