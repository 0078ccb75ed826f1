"""A quantity over steps, such as memory."""

from __future__ import annotations

from markupsafe import Markup

from pyrometer.bench.measurement import MemoryUse
from pyrometer.quantity import format_bytes
from pyrometer.report.charts.plane import Plane, Ranged
from pyrometer.report.charts.scale import BYTES, Scale, fit, plain
from pyrometer.report.charts.svg import at, tag, x_axis

TOP = 18.0
BOTTOM = 168.0


def memory_line(memory: MemoryUse) -> Markup | None:
    """Draw memory over the steps; `None` when the record holds fewer than two values."""
    if len(memory.series_bytes) < 2 or len(memory.steps) != len(memory.series_bytes):
        return None
    across = Scale(memory.steps[0], memory.steps[-1])
    up = fit([*memory.series_bytes, memory.start_bytes, memory.peak_bytes], pad=0.08)
    plane = Plane(up, BYTES, TOP, BOTTOM)
    points = [
        Ranged(across(step), value, value, value)
        for step, value in zip(memory.steps, memory.series_bytes, strict=True)
    ]
    parts = [*x_axis(across, plain, BOTTOM, BOTTOM), plane.curve(points, band=False)]
    parts += _reference("before the first step", memory.start_bytes, plane)
    parts += _reference("peak", memory.peak_bytes, plane)
    return plane.chart(_description(memory), parts)


def _reference(name: str, value: float, plane: Plane) -> list[Markup]:
    text, y = f"{name} {format_bytes(value)}", plane.y(value) - 5
    return [
        plane.level(value, "marker tail"),
        tag("text", text, cls="label", x=at(1.0), y=y, text_anchor="end"),
    ]


def _description(memory: MemoryUse) -> str:
    return (
        f"Memory of {memory.device} over {len(memory.steps)} steps: from {format_bytes(memory.start_bytes)}, "
        f"peak {format_bytes(memory.peak_bytes)}"
    )
