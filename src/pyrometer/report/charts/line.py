"""A quantity over steps, such as memory."""

from __future__ import annotations

from functools import partial

from markupsafe import Markup

from pyrometer.bench.measurement import MemoryUse
from pyrometer.quantity import format_bytes
from pyrometer.report.charts.curve import Ranged, curve
from pyrometer.report.charts.scale import BYTES, Scale, fit, plain
from pyrometer.report.charts.svg import AXIS_HEIGHT, at, chart, tag, x_axis, y_axis

TOP = 18.0
BOTTOM = 168.0


def memory_line(memory: MemoryUse) -> Markup | None:
    """Draw memory over the steps; `None` when the record holds fewer than two values."""
    if len(memory.series_bytes) < 2 or len(memory.steps) != len(memory.series_bytes):
        return None
    across = Scale(memory.steps[0], memory.steps[-1])
    up = fit([*memory.series_bytes, memory.start_bytes, memory.peak_bytes], pad=0.08)
    axis, lines = y_axis(up, BYTES, TOP, BOTTOM, BOTTOM + AXIS_HEIGHT)
    points = [
        Ranged(across(step), value, value, value)
        for step, value in zip(memory.steps, memory.series_bytes, strict=True)
    ]
    stretched = curve(points, partial(_y, up), BOTTOM, band=False)
    parts = [*lines, *x_axis(across, plain, BOTTOM, BOTTOM), stretched]
    parts += _reference("before the first step", memory.start_bytes, up)
    parts += _reference("peak", memory.peak_bytes, up)
    return chart(_description(memory), parts, BOTTOM + AXIS_HEIGHT, axis)


def _reference(name: str, value: float, scale: Scale) -> list[Markup]:
    y = _y(scale, value)
    return [
        tag("line", cls="marker tail", x1="0%", x2="100%", y1=y, y2=y),
        tag("text", f"{name} {format_bytes(value)}", cls="label", x=at(1.0), y=y - 5, text_anchor="end"),
    ]


def _y(scale: Scale, value: float) -> float:
    return BOTTOM - scale(value) * (BOTTOM - TOP)


def _description(memory: MemoryUse) -> str:
    return (
        f"Memory of {memory.device} over {len(memory.steps)} steps: from {format_bytes(memory.start_bytes)}, "
        f"peak {format_bytes(memory.peak_bytes)}"
    )
