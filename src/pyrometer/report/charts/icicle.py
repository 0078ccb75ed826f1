"""A call tree seen from above: each box lies under its caller and is as wide as its share of the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.report.charts.svg import at, chart, tag

ROW_HEIGHT = 22.0
LABELLED = 0.025
"""Narrower boxes carry no text; their tooltip does."""


class Box(NamedTuple):
    """One node of the tree, where it is drawn."""

    depth: int
    start: float  # share of the whole, from the left
    width: float
    label: str
    title: str
    slot: int  # colour


def icicle(boxes: Sequence[Box], label: str) -> Markup:
    """Draw the boxes; each is a picture of its own, so that its text is cut off at its edge."""
    parts = []
    for box in boxes:
        drawn = tag(
            "rect", tag("title", box.title), cls=f"segment phase-{box.slot}", width="100%", height=ROW_HEIGHT
        )
        text = tag("text", box.label, cls="inside", x=5, y=ROW_HEIGHT - 7) if box.width >= LABELLED else ""
        parts.append(
            tag(
                "svg",
                drawn,
                text,
                x=at(box.start),
                width=at(box.width),
                y=box.depth * ROW_HEIGHT,
                height=ROW_HEIGHT,
            )
        )
    deepest = max((box.depth for box in boxes), default=0)
    return chart(label, parts, (deepest + 1) * ROW_HEIGHT)
