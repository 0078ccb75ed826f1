"""Latency over the time of a log: quantiles as lines, and where their level changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.monitor.logs.record import LatencyChange, TrendPoint
from pyrometer.quantity import format_seconds
from pyrometer.report.charts.plane import Plane
from pyrometer.report.charts.scale import SECONDS, Scale, fit
from pyrometer.report.charts.svg import anchor, at, tag

TOP = 22.0
BOTTOM = 188.0
LINES = (("p50_s", "series"), ("p99_s", "marker tail"))
MOST_LABELS = 5


class LatencyTrend(NamedTuple):
    """What is drawn."""

    points: Sequence[TrendPoint]
    changes: Sequence[LatencyChange]


def latency_trend(trend: LatencyTrend) -> Markup | None:
    """P50 and P99 over time; `None` for fewer than two stretches with requests."""
    drawn = [point for point in trend.points if point.p50_s is not None]
    if len(drawn) < 2:
        return None
    across = Scale(drawn[0].at_s, drawn[-1].at_s)
    values = [value for point in drawn for value in (point.p50_s, point.p99_s) if value]
    up = fit(values, pad=0.06, log_above=20)
    plane = Plane(up, SECONDS, TOP, BOTTOM)
    curves = [_curve(trend.points, field, cls, across, plane) for field, cls in LINES]
    parts = [*_times(drawn, across, plane), plane.stretched(*curves)]
    parts += [*_changes(trend.changes, across, plane), *_names(drawn[-1], plane)]
    medians = [point.p50_s for point in drawn if point.p50_s is not None]
    label = f"Median latency over {len(drawn)} stretches of time, from {format_seconds(min(medians))} to {format_seconds(max(medians))}"
    return plane.chart(label, parts)


def _curve(points: Sequence[TrendPoint], field: str, cls: str, across: Scale, plane: Plane) -> Markup:
    """One path; where a stretch has no requests it is interrupted."""
    path = ""
    for present, part in groupby(points, lambda point: getattr(point, field) is not None):
        if present:
            path += f"M{plane.path(((across(one.at_s), getattr(one, field)) for one in part), ' L')}"
    return tag("path", cls=cls, d=path, fill="none", vector_effect="non-scaling-stroke")


def _times(points: Sequence[TrendPoint], across: Scale, plane: Plane) -> list[Markup]:
    parts = [tag("line", cls="axis", x1="0%", x2="100%", y1=BOTTOM, y2=BOTTOM)]
    for i in range(5):
        wanted = across.low + (across.high - across.low) * i / 4
        point = min(points, key=lambda one: abs(one.at_s - wanted))
        long = across.high - across.low > 86400
        said = point.at[5:16].replace("T", " ") if long else point.at[11:19]
        parts.append(plane.below(across(point.at_s), said))
    return parts


def _changes(changes: Sequence[LatencyChange], across: Scale, plane: Plane) -> list[Markup]:
    parts = [plane.upright(across(change.at_s), "marker deadline") for change in changes]
    for change in sorted(changes, key=lambda one: -abs(one.ratio - 1))[:MOST_LABELS]:
        share = across(change.at_s)
        said = f"{'P99 ' * (change.quantile == 'p99')}{change.ratio - 1:+.0%}"
        parts.append(
            tag("text", said, cls="label deadline", x=at(share), y=TOP - 7, text_anchor=anchor(share))
        )
    return parts


def _names(last: TrendPoint, plane: Plane) -> list[Markup]:
    named = [("P50", last.p50_s), ("P99", last.p99_s)]
    return [
        tag("text", name, cls="label", x=at(1.0), y=plane.y(value) - 5, text_anchor="end")
        for name, value in named
        if value
    ]
