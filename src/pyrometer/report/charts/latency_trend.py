"""Latency over the time of a log: quantiles as lines, and where their level changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.monitor.logs.record import LatencyChange, TrendPoint
from pyrometer.quantity import format_seconds
from pyrometer.report.charts.scale import SECONDS, Scale, fit
from pyrometer.report.charts.svg import AXIS_HEIGHT, anchor, at, chart, tag, y_axis

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
    axis, lines = y_axis(up, SECONDS, TOP, BOTTOM, BOTTOM + AXIS_HEIGHT)
    curves = [_curve(trend.points, field, cls, across, up) for field, cls in LINES]
    stretched = tag(
        "svg",
        *curves,
        viewBox=f"0 0 1000 {BOTTOM:g}",
        preserveAspectRatio="none",
        width="100%",
        height=BOTTOM,
    )
    parts = [
        *lines,
        *_times(drawn, across),
        stretched,
        *_changes(trend.changes, across),
        *_names(drawn[-1], up),
    ]
    medians = [point.p50_s for point in drawn if point.p50_s is not None]
    label = f"Median latency over {len(drawn)} stretches of time, from {format_seconds(min(medians))} to {format_seconds(max(medians))}"
    return chart(label, parts, BOTTOM + AXIS_HEIGHT, axis)


def _curve(points: Sequence[TrendPoint], field: str, cls: str, across: Scale, up: Scale) -> Markup:
    """One path; where a stretch has no requests it is interrupted."""
    path = ""
    for present, part in groupby(points, lambda point: getattr(point, field) is not None):
        if present:
            steps = [f"{across(one.at_s) * 1000:.1f},{_y(up, getattr(one, field)):.1f}" for one in part]
            path += f"M{' L'.join(steps)}"
    return tag("path", cls=cls, d=path, fill="none", vector_effect="non-scaling-stroke")


def _times(points: Sequence[TrendPoint], across: Scale) -> list[Markup]:
    parts = [tag("line", cls="axis", x1="0%", x2="100%", y1=BOTTOM, y2=BOTTOM)]
    for i in range(5):
        wanted = across.low + (across.high - across.low) * i / 4
        point = min(points, key=lambda one: abs(one.at_s - wanted))
        long = across.high - across.low > 86400
        share = across(point.at_s)
        said = point.at[5:16].replace("T", " ") if long else point.at[11:19]
        parts.append(tag("text", said, cls="tick", x=at(share), y=BOTTOM + 17.0, text_anchor=anchor(share)))
    return parts


def _changes(changes: Sequence[LatencyChange], across: Scale) -> list[Markup]:
    parts = []
    for change in changes:
        share = across(change.at_s)
        parts.append(tag("line", cls="marker deadline", x1=at(share), x2=at(share), y1=TOP, y2=BOTTOM))
    for change in sorted(changes, key=lambda one: -abs(one.ratio - 1))[:MOST_LABELS]:
        share = across(change.at_s)
        said = f"{'P99 ' * (change.quantile == 'p99')}{change.ratio - 1:+.0%}"
        parts.append(
            tag("text", said, cls="label deadline", x=at(share), y=TOP - 7, text_anchor=anchor(share))
        )
    return parts


def _names(last: TrendPoint, up: Scale) -> list[Markup]:
    named = [("P50", last.p50_s), ("P99", last.p99_s)]
    return [
        tag("text", name, cls="label", x=at(1.0), y=_y(up, value) - 5, text_anchor="end")
        for name, value in named
        if value
    ]


def _y(scale: Scale, value: float) -> float:
    return BOTTOM - scale(value) * (BOTTOM - TOP)
