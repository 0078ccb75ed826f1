"""Where time goes, by class: one bar, and one column per slice of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.quantity import Seconds
from pyrometer.report.charts.scale import SECONDS, Scale
from pyrometer.report.charts.svg import AXIS_HEIGHT, at, chart, tag, x_axis
from pyrometer.report.facts.layout import percent

BAR_TOP = 24.0
BAR_HEIGHT = 34.0
NARROW_CHARACTERS, WIDE_CHARACTERS = 48, 92
"""Characters that fit above the whole bar on a telephone and on a page: a label is drawn where it fits over its part."""

STRIP_HEIGHT = 72.0


class Share(NamedTuple):
    """One part of a whole."""

    name: str
    share: float
    said: str  # such as its time
    slot: int  # colour
    shade: int = 0  # of parts with one colour, the largest first


MOST_SHADES = 3


def colour_class(part: Share) -> str:
    """The classes that colour a part."""
    return f"phase-{part.slot} shade-{min(part.shade, MOST_SHADES)}" if part.shade else f"phase-{part.slot}"


def share_bar(shares: Sequence[Share], whole: str) -> Markup:
    """One bar, divided; wide parts carry their name, all are in the list that goes with it."""
    parts = []
    start = 0.0
    for part in shares:
        title = tag("title", f"{part.name} {percent(part.share)}, {part.said}")
        box = {"x": at(start), "width": at(part.share), "y": BAR_TOP, "height": BAR_HEIGHT}
        parts.append(tag("rect", title, cls=f"segment {colour_class(part)}", **box))
        figure = f" {percent(part.share)}"
        label = part.name + figure
        if len(label) <= part.share * WIDE_CHARACTERS:
            roomy = "label" if len(label) <= part.share * NARROW_CHARACTERS else "label wide-only"
            # The name stands alone, so that the page finds it in its dictionary.
            parts.append(tag("text", tag("tspan", part.name), figure, cls=roomy, x=at(start), y=BAR_TOP - 8))
        start += part.share
    described = ", ".join(f"{part.name} {percent(part.share)}" for part in shares)
    return chart(f"Shares of {whole}: {described}", parts, BAR_TOP + BAR_HEIGHT)


def share_strip(
    columns: Sequence[Sequence[float]], slots: Sequence[int], label: str, length_s: Seconds
) -> Markup:
    """Stacked columns over time; each holds the shares of the classes, in the order of `slots`, and sums to at most 1."""
    width = 1 / max(len(columns), 1)
    parts = []
    for i, shares in enumerate(columns):
        top = 0.0
        for slot, share in zip(slots, shares, strict=True):
            if share > 0:
                box = {"y": top * STRIP_HEIGHT, "height": share * STRIP_HEIGHT}
                # A hair wider than its place, so that no gap shows between columns.
                parts.append(
                    tag("rect", cls=f"fill phase-{slot}", x=at(i * width), width=at(width * 1.04), **box)
                )
            top += share
    axis = x_axis(Scale(0.0, length_s), SECONDS, STRIP_HEIGHT, STRIP_HEIGHT)
    return chart(label, [*parts, *axis], STRIP_HEIGHT + AXIS_HEIGHT)
