"""Building SVG: elements with escaped attributes, and the frame that every chart sits in."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

from pyrometer.report.charts.scale import Scale, Unit, ticks
from pyrometer.report.visible import for_template

AXIS_HEIGHT = 26
EDGE = 0.05
"""Labels nearer to an end of the axis than this are aligned with the end, so that they are not cut off."""

WIDTH_OF_LETTER = 7.4
"""Of a letter of a label in a wide typeface, in pixels."""


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """An element; text and attributes are escaped, `None` leaves an attribute out, `cls` is its class.

    >>> tag("text", "a < b", x="5%", cls="tick", text_anchor="end")
    Markup('<text x="5%" class="tick" text-anchor="end">a &lt; b</text>')
    """
    inner = "".join(escape(for_template(child)) for child in children)
    given = "".join(
        f' {_attribute(key)}="{_written(value)}"' for key, value in attributes.items() if value is not None
    )
    return Markup(f"<{name}{given}>{inner}</{name}>")  # noqa: S704 - escaped one by one: a page draws thousands


def _written(value: object) -> str:
    return f"{value:.2f}" if isinstance(value, float) else escape(for_template(value))


def _attribute(key: str) -> str:
    return "class" if key == "cls" else escape(key.replace("_", "-"))


def at(share: float) -> str:
    """A horizontal position or width.

    >>> at(0.12345)
    '12.35%'
    """
    return f"{share * 100:.2f}%"


def anchor(share: float) -> str:
    """How a label at this position is aligned, so that it stays inside the chart.

    >>> anchor(0.01), anchor(0.5), anchor(1.0)
    ('start', 'middle', 'end')
    """
    return "start" if share < EDGE else "end" if share > 1 - EDGE else "middle"


def shape(cls: str, path: str, share: float, y: float, title: str | None = None) -> Markup:
    """A small shape drawn around the origin and moved to a place: paths know no percentages."""
    drawn = tag("path", tag("title", title) if title is not None else "", cls=cls, d=path)
    return tag("svg", drawn, x=at(share), y=y, overflow="visible")


def chart(label: str, parts: Iterable[Markup], height: float, y_axis: Markup | None = None) -> Markup:
    """The frame: an image with a text alternative, and the vertical axis beside it."""
    plot = tag("svg", *parts, cls="plot", role="img", aria_label=label, width="100%", height=height)
    return tag("div", y_axis or Markup(), plot, cls="chart")


def x_axis(scale: Scale, unit: Unit, top: float, bottom: float, most: int = 6) -> list[Markup]:
    """Vertical grid lines from `top` to `bottom`, and the labels of the ticks below."""
    parts = []
    for value, label in ticks(scale, unit, most):
        share = scale(value)
        parts.append(tag("line", cls="grid", x1=at(share), x2=at(share), y1=top, y2=bottom))
        parts.append(tag("text", label, cls="tick", x=at(share), y=bottom + 17.0, text_anchor=anchor(share)))
    parts.append(tag("line", cls="axis", x1="0%", x2="100%", y1=bottom, y2=bottom))
    return parts


def y_axis(scale: Scale, unit: Unit, top: float, bottom: float, height: float) -> tuple[Markup, list[Markup]]:
    """The labels of the vertical axis as a picture of their own, and the horizontal grid lines of the plot."""
    marks = list(ticks(scale, unit, most=6))
    edge = max(58, *(round(len(label) * WIDTH_OF_LETTER) for _, label in marks))
    labels, lines = [], []
    for value, label in marks:
        y = bottom - scale(value) * (bottom - top)
        labels.append(tag("text", label, cls="tick", x=edge, y=y + 4.0, text_anchor="end"))
        lines.append(tag("line", cls="grid", x1="0%", x2="100%", y1=y, y2=y))
    return tag("svg", *labels, cls="y-axis", width=edge + 6, height=height, aria_hidden="true"), lines
