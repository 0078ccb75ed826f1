"""Quantities on top of each other over time, such as memory by category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from pyrometer.memory.timeline import Timeline
from pyrometer.quantity import format_bytes
from pyrometer.report.charts.scale import BYTES, Scale
from pyrometer.report.charts.svg import at, chart, tag, y_axis

TOP = 30.0
BOTTOM = 230.0
HEIGHT = 256.0


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
    axis, lines = y_axis(up, BYTES, TOP, BOTTOM, HEIGHT)
    shown = {name: timeline.category_bytes[name] for name in slots if name in timeline.category_bytes}
    if not shown:
        shown, slots = {"all": timeline.total_bytes}, {"all": 2}
    stretched = tag(
        "svg",
        *_areas(shown, slots, across, up),
        viewBox=f"0 0 1000 {BOTTOM:g}",
        preserveAspectRatio="none",
        width="100%",
        height=BOTTOM,
    )
    parts = [stretched, *lines, *_phases(timeline, across), *_peak(timeline, across, up)]
    return chart(_description(timeline), parts, HEIGHT, axis)


def _areas(
    shown: Mapping[str, Sequence[int]], slots: Mapping[str, int], across: Scale, up: Scale
) -> list[Markup]:
    areas, below = [], [0] * len(next(iter(shown.values())))
    for name, held in shown.items():
        above = [low + more for low, more in zip(below, held, strict=True)]
        edge = [f"{across(i) * 1000:.1f},{_y(up, value):.1f}" for i, value in enumerate(above)]
        back = [
            f"{across(i) * 1000:.1f},{_y(up, value):.1f}" for i, value in reversed(list(enumerate(below)))
        ]
        areas.append(
            tag("polygon", tag("title", name), cls=f"fill phase-{slots[name]}", points=" ".join(edge + back))
        )
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


def _peak(timeline: Timeline, across: Scale, up: Scale) -> list[Markup]:
    peak = max(timeline.total_bytes)
    where = across(timeline.total_bytes.index(peak))
    aligned = "end" if where > 0.5 else "start"
    return [
        tag("line", cls="marker tail", x1=at(where), x2=at(where), y1=_y(up, peak) - 10, y2=BOTTOM),
        tag(
            "text",
            f"peak of tensors alone {format_bytes(peak)}",
            cls="label",
            x=at(where),
            y=TOP - 14,
            text_anchor=aligned,
        ),
    ]


def _y(scale: Scale, value: float) -> float:
    return BOTTOM - scale(value) * (BOTTOM - TOP)


def _description(timeline: Timeline) -> str:
    names = ", ".join(timeline.category_bytes) or "all bytes"
    return f"Live bytes over {timeline.event[-1] + 1:,} allocations and frees, by category ({names}); peak of tensors alone {format_bytes(max(timeline.total_bytes))}"
