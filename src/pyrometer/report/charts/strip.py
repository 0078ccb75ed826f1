"""Step time over time: the warm-up, and the steady samples in the order they were taken, each on its own axis."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pyrometer.bench.measurement import Measurement
from pyrometer.quantity import counted, format_seconds
from pyrometer.report.charts.histogram import last_shown
from pyrometer.report.charts.plane import Plane
from pyrometer.report.charts.scale import SECONDS, Scale, fit
from pyrometer.report.charts.svg import at, shape, tag

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
    plane = Plane(warmup_scale(m), SECONDS, TOP, BOTTOM)
    marks = []
    for index, step in enumerate(m.warmup_s):
        where = (index + 0.5) / len(m.warmup_s)
        title = f"step {index + 1}: {format_seconds(step)}"
        marks.append(shape("warmup", "M-3 -3 H3 V3 H-3 Z", where, plane.y(step), title))
    label = counted(len(m.warmup_s), "warm-up step")
    if len(m.warmup_s) < m.warmup_steps:
        label += f" of {m.warmup_steps:,}"
    described = f"Warm-up: first call {format_seconds(m.first_call_s)}, then {label} towards {format_seconds(m.median_s)}"
    return _panel(plane, described, label, [*marks, plane.level(m.median_s, "marker median")])


def steady_strip(measurement: Measurement) -> Markup | None:
    """Draw the steady samples as dots; `None` when the record holds none."""
    m = measurement
    if not m.samples_s:
        return None
    plane = Plane(fit([min(m.samples_s), last_shown(m)], pad=0.08), SECONDS, TOP, BOTTOM)
    radius = 1.8 if len(m.samples_s) > FEW else 3.2
    marks = []
    for index, sample in enumerate(m.samples_s):
        where = (index + 0.5) / len(m.samples_s)
        if sample <= plane.up.high:
            marks.append(tag("circle", cls="sample", cx=at(where), cy=plane.y(sample), r=radius))
        else:
            marks.append(shape("beyond", "M0 -5 L4 2 H-4 Z", where, TOP, format_seconds(sample)))
    label = f"{counted(len(m.samples_s), 'steady sample' if m.steady else 'sample')} in time order"
    described = f"{label}, median {format_seconds(m.median_s)}"
    return _panel(plane, described, label, [*marks, plane.level(m.median_s, "marker median")])


def _panel(plane: Plane, described: str, label: str, marks: Sequence[Markup]) -> Markup:
    ground = tag("line", cls="axis", x1="0%", x2="100%", y1=BOTTOM, y2=BOTTOM)
    below = tag("text", label, cls="tick", x="0%", y=BOTTOM + 17)
    return plane.chart(described, [ground, below, *marks])
