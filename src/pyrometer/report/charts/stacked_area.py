"""Quantities on top of each other over time, such as memory by category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from pyrometer.memory.timeline import Timeline
from pyrometer.quantity import format_bytes
from pyrometer.report.charts.plane import Plane
from pyrometer.report.charts.scale import BYTES, Scale
from pyrometer.report.charts.svg import at, tag

TOP = 30.0
BOTTOM = 230.0


def stacked_area(timeline: Timeline, slots: Mapping[str, int]) -> Markup | None:
    """Draw the bytes of each category over the events of a recording; `None` when there is nothing to draw.

    Args:
        timeline: what to draw; phases are marked below.
        slots: colour of each category, in the order in which they are stacked, the lowest first.
    """
    if len(timeline.event) < 2 or not any(timeline.total_bytes):
        return None
    across = Scale(0, len(timeline.event) - 1)
    up = Scale(0, max(timeline.total_bytes) * 1.04)
    plane = Plane(up, BYTES, TOP, BOTTOM)
    shown = {name: timeline.category_bytes[name] for name in slots if name in timeline.category_bytes}
    if not shown:
        shown, slots = {"all": timeline.total_bytes}, {"all": 2}
    areas = plane.stretched(*_areas(shown, slots, across, plane))
    parts = [*_phases(timeline, across), *_peak(timeline, across, plane)]
    return plane.chart(_description(timeline), parts, ground=[areas])


def _areas(
    shown: Mapping[str, Sequence[int]], slots: Mapping[str, int], across: Scale, plane: Plane
) -> list[Markup]:
    areas, below = [], [0] * len(next(iter(shown.values())))
    for name, held in shown.items():
        above = [low + more for low, more in zip(below, held, strict=True)]
        corners = [*enumerate(above), *reversed(list(enumerate(below)))]
        edge = plane.path((across(i), value) for i, value in corners)
        areas.append(tag("polygon", tag("title", name), cls=f"fill phase-{slots[name]}", points=edge))
        below = above
    return areas


def _phases(timeline: Timeline, across: Scale) -> list[Markup]:
    parts = []
    for span in timeline.phases:
        begin, end = (
            across(span.first),
            across(span.last + 1 if span.last + 1 < len(timeline.event) else span.last),
        )
        parts.append(tag("line", cls="grid", x1=at(begin), x2=at(begin), y1=TOP, y2=BOTTOM + 6))
        if end - begin > 0.011 * len(span.name):
            middle = (begin + end) / 2
            parts.append(
                tag("text", span.name, cls="tick", x=at(middle), y=BOTTOM + 18, text_anchor="middle")
            )
    return parts


def _peak(timeline: Timeline, across: Scale, plane: Plane) -> list[Markup]:
    peak = max(timeline.total_bytes)
    where = across(timeline.total_bytes.index(peak))
    aligned = "end" if where > 0.5 else "start"
    return [
        tag("line", cls="marker tail", x1=at(where), x2=at(where), y1=plane.y(peak) - 10, y2=BOTTOM),
        tag(
            "text",
            f"peak of tensors alone {format_bytes(peak)}",
            cls="label",
            x=at(where),
            y=TOP - 14,
            text_anchor=aligned,
        ),
    ]


def _description(timeline: Timeline) -> str:
    names = ", ".join(timeline.category_bytes) or "all bytes"
    return f"Live bytes over {timeline.event[-1] + 1:,} allocations and frees, by category ({names}); peak of tensors alone {format_bytes(max(timeline.total_bytes))}"
