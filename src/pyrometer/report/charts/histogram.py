"""How step times are spread: bars, the median with its interval, the tail quantiles, the deadline."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup

from pyrometer.bench.measurement import Measurement
from pyrometer.quantity import format_seconds
from pyrometer.report.charts.bins import bin_count, count_bins
from pyrometer.report.charts.scale import SECONDS, Scale, fit, plain
from pyrometer.report.charts.svg import AXIS_HEIGHT, at, chart, tag, x_axis, y_axis

FEWEST = 8
"""With fewer samples a histogram shows nothing that the samples themselves do not."""

LOG_ABOVE = 4.0
BARS_HEIGHT = 170.0
ROW_HEIGHT = 18.0
LEFT = 0.6
"""Markers left of this carry their label on the right, others on the left."""


class Marker(NamedTuple):
    """A vertical line with a label."""

    name: str
    value_s: float
    cls: str


def last_shown(measurement: Measurement) -> float:
    """Where an axis of step times ends: beyond P99, but not so far that a few hiccups hide everything else."""
    m = measurement
    return min(max(m.samples_s), m.p99_s + (m.p99_s - m.p50_s) / 2 + m.iqr_s)


def latency_scale(measurement: Measurement) -> Scale:
    """The axis of step times: logarithmic when its end is over four times its start."""
    m = measurement
    marks = [min(m.samples_s), last_shown(m)]
    if m.deadline_s is not None and m.deadline_s < 2 * m.max_s:
        marks.append(m.deadline_s)
    return fit(marks, log_above=LOG_ABOVE)


def histogram(measurement: Measurement) -> Markup | None:
    """Draw the spread of the steady samples; `None` with fewer than eight of them."""
    m = measurement
    if len(m.samples_s) < FEWEST:
        return None
    scale = latency_scale(m)
    markers = _markers(m, scale)
    top = len(markers) * ROW_HEIGHT + 8
    bottom = top + BARS_HEIGHT
    samples = [sample for sample in m.samples_s if sample <= scale.high]
    edges = scale.edges(bin_count(samples, scale))
    counts = count_bins(samples, edges)
    heights = Scale(0, max(counts) * 1.04)
    axis, lines = y_axis(heights, plain, top, bottom, bottom + AXIS_HEIGHT)
    parts = [*lines, *x_axis(scale, SECONDS, bottom, bottom)]
    parts += [*_bars(m, scale, edges, counts, (heights, top, bottom)), _band(m, scale, top, bottom)]
    for marker, row in zip(markers, _label_rows([scale(marker.value_s) for marker in markers]), strict=True):
        parts += _marker(marker, scale(marker.value_s), top - 8 - row * ROW_HEIGHT, bottom)
    if len(samples) < len(m.samples_s):
        beyond = f"{len(m.samples_s) - len(samples)} slower, up to {format_seconds(m.max_s)} →"
        parts.append(tag("text", beyond, cls="label tail", x="100%", y=bottom - 8, text_anchor="end"))
    return chart(_description(m), parts, bottom + AXIS_HEIGHT, axis)


def _markers(m: Measurement, scale: Scale) -> list[Marker]:
    markers = [Marker("median", m.p50_s, "median"), Marker("P90", m.p90_s, "tail")]
    markers += [Marker("P95", m.p95_s, "tail"), Marker("P99", m.p99_s, "tail")]
    if m.deadline_s is not None and scale.low <= m.deadline_s <= scale.high:
        markers.append(Marker("deadline", m.deadline_s, "deadline"))
    return sorted(markers, key=lambda marker: marker.value_s)


def _label_rows(shares: list[float]) -> list[int]:
    """A row for each label, 0 lowest, so that no marker's line crosses a label: those on the left lean over the others."""
    left = sum(share <= LEFT for share in shares)
    right = len(shares) - left
    return [right + left - 1 - index if index < left else index - left for index in range(len(shares))]


def _band(m: Measurement, scale: Scale, top: float, bottom: float) -> Markup:
    start, end = scale(m.ci_low_s), scale(m.ci_high_s)
    return tag(
        "rect", cls="interval", x=at(start), width=at(max(end - start, 0.002)), y=top, height=bottom - top
    )


def _bars(
    m: Measurement, scale: Scale, edges: list[float], counts: list[int], frame: tuple[Scale, float, float]
) -> list[Markup]:
    heights, top, bottom = frame
    bars = []
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        if count:
            height = max(heights(count) * (bottom - top), 1.0)
            late = m.deadline_s is not None and low >= m.deadline_s
            title = tag("title", f"{count} between {format_seconds(low)} and {format_seconds(high)}")
            span = {"x": at(scale(low)), "width": at(scale(high) - scale(low))}
            bars.append(
                tag(
                    "rect", title, cls="bar late" if late else "bar", y=bottom - height, height=height, **span
                )
            )
    return bars


def _marker(marker: Marker, share: float, y: float, bottom: float) -> list[Markup]:
    label = f"{marker.name} {format_seconds(marker.value_s)}"
    side = {"text_anchor": "start", "dx": 5} if share <= LEFT else {"text_anchor": "end", "dx": -5}
    return [
        tag("line", cls=f"marker {marker.cls}", x1=at(share), x2=at(share), y1=y - 10, y2=bottom),
        tag("text", label, cls=f"label {marker.cls}", x=at(share), y=y, **side),
    ]


def _description(m: Measurement) -> str:
    text = (
        f"Histogram of {len(m.samples_s):,} samples: median {format_seconds(m.median_s)}, "
        f"P99 {format_seconds(m.p99_s)}, from {format_seconds(m.min_s)} to {format_seconds(m.max_s)}"
    )
    return text if m.deadline_s is None else f"{text}, deadline {format_seconds(m.deadline_s)}"
