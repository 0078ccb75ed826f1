"""Step time over time: the warm-up, and the steady samples in the order they were taken, each on its own axis."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pyrometer.bench.measurement import Measurement
from pyrometer.quantity import counted, format_seconds
from pyrometer.report.charts.histogram import last_shown
from pyrometer.report.charts.scale import SECONDS, Scale, fit
from pyrometer.report.charts.svg import AXIS_HEIGHT, at, chart, shape, tag, y_axis

FEW = 60
LOG_ABOVE = 6.0
TOP = 14.0
BOTTOM = 204.0


def warmup_scale(measurement: Measurement) -> Scale:
    """The axis of the warm-up, down to the steady median: logarithmic when it spans over six times."""
    return fit([*measurement.warmup_s, measurement.median_s], pad=0.06, log_above=LOG_ABOVE)


def warmup_strip(measurement: Measurement) -> Markup | None:
    """Draw the warm-up steps as squares; `None` when there were none."""
    m = measurement
    if not m.warmup_s:
        return None
    scale = warmup_scale(m)
    marks = []
    for index, step in enumerate(m.warmup_s):
        where = (index + 0.5) / len(m.warmup_s)
        title = f"step {index + 1}: {format_seconds(step)}"
        marks.append(shape("warmup", "M-3 -3 H3 V3 H-3 Z", where, _y(scale, step), title))
    label = counted(len(m.warmup_s), "warm-up step")
    if len(m.warmup_s) < m.warmup_steps:
        label += f" of {m.warmup_steps:,}"
    described = f"Warm-up: first call {format_seconds(m.first_call_s)}, then {label} towards {format_seconds(m.median_s)}"
    return _panel(described, label, scale, [*marks, _median(m, scale)])


def steady_strip(measurement: Measurement) -> Markup | None:
    """Draw the steady samples as dots; `None` when the record holds none."""
    m = measurement
    if not m.samples_s:
        return None
    scale = fit([min(m.samples_s), last_shown(m)], pad=0.08)
    radius = 1.8 if len(m.samples_s) > FEW else 3.2
    marks = []
    for index, sample in enumerate(m.samples_s):
        where = (index + 0.5) / len(m.samples_s)
        if sample <= scale.high:
            marks.append(tag("circle", cls="sample", cx=at(where), cy=_y(scale, sample), r=radius))
        else:
            marks.append(shape("beyond", "M0 -5 L4 2 H-4 Z", where, TOP, format_seconds(sample)))
    label = f"{counted(len(m.samples_s), 'steady sample' if m.steady else 'sample')} in time order"
    return _panel(f"{label}, median {format_seconds(m.median_s)}", label, scale, [*marks, _median(m, scale)])


def _panel(described: str, label: str, scale: Scale, marks: Sequence[Markup]) -> Markup:
    axis, lines = y_axis(scale, SECONDS, TOP, BOTTOM, BOTTOM + AXIS_HEIGHT)
    ground = tag("line", cls="axis", x1="0%", x2="100%", y1=BOTTOM, y2=BOTTOM)
    below = tag("text", label, cls="tick", x="0%", y=BOTTOM + 17)
    return chart(described, [*lines, ground, below, *marks], BOTTOM + AXIS_HEIGHT, axis)


def _median(m: Measurement, scale: Scale) -> Markup:
    y = _y(scale, m.median_s)
    return tag("line", cls="marker median", x1="0%", x2="100%", y1=y, y2=y)


def _y(scale: Scale, value: float) -> float:
    return BOTTOM - scale(value) * (BOTTOM - TOP)
