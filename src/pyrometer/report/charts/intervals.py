"""Figures with their intervals below each other on one axis, each with its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.report.charts.scale import Scale, Unit, fit
from pyrometer.report.charts.svg import AXIS_HEIGHT, at, chart, shape, tag, x_axis

TOP = 20.0
NAME_CHARACTERS = 30
"""Of a name: a row has to fit on a telephone."""

ROW = 44.0


class IntervalRow(NamedTuple):
    """A figure with its interval, where one is known."""

    name: str
    said: str  # the figure in words
    value: float
    low: float | None
    high: float | None
    tone: str = ""  # faster, slower, or nothing
    more: str = ""  # said where there is room


class Intervals(NamedTuple):
    """Rows on one axis, with a line at the value that they are held against."""

    rows: Sequence[IntervalRow]
    unit: Unit
    reference: float
    directions: tuple[str, str]  # what lies left and right of the reference


def intervals(content: Intervals) -> Markup | None:
    """Draw the rows; `None` where there are none."""
    rows = content.rows
    if not rows:
        return None
    ends = [end for row in rows for end in (row.value, row.low, row.high) if end is not None]
    scale = fit([end for end in (*ends, content.reference) if end > 0], log_above=4.0)
    bottom = TOP + len(rows) * ROW
    parts = [*x_axis(scale, content.unit, TOP, bottom, most=5), *_reference(content, scale, bottom)]
    for index, row in enumerate(rows):
        parts += _row(row, scale, TOP + index * ROW)
    described = "; ".join(f"{row.name}: {row.said}" + (f", {row.more}" if row.more else "") for row in rows)
    return chart(described, parts, bottom + AXIS_HEIGHT)


def _reference(content: Intervals, scale: Scale, bottom: float) -> list[Markup]:
    share = scale(content.reference)
    left, right = content.directions
    parts = [tag("line", cls="one", x1=at(share), x2=at(share), y1=TOP - 4, y2=bottom)]
    if left and share > 0.2:
        parts.append(tag("text", left, cls="tick", x=at(share), dx=-8, y=TOP - 8, text_anchor="end"))
    if right and share < 0.8:
        parts.append(tag("text", right, cls="tick", x=at(share), dx=8, y=TOP - 8))
    return parts


def _row(row: IntervalRow, scale: Scale, top: float) -> list[Markup]:
    y = top + 32
    # The name stands alone, so that the page finds its words in its dictionary.
    words = [tag("tspan", _short(row.name), font_weight="640"), tag("tspan", row.said, dx=10)]
    words += [tag("tspan", row.more, dx=10, cls="wide-only")] if row.more else []
    parts = [tag("text", *words, cls="label", x="0%", y=top + 17)]
    if row.low is not None and row.high is not None:
        first, last = at(scale(row.low)), at(scale(row.high))
        parts.append(tag("line", cls=f"whisker {row.tone}", x1=first, x2=last, y1=y, y2=y))
        parts += [
            tag("line", cls=f"whisker {row.tone}", x1=x, x2=x, y1=y - 5, y2=y + 5) for x in (first, last)
        ]
    return [*parts, shape(f"estimate {row.tone}", "M0 -6 L5 0 L0 6 L-5 0 Z", scale(row.value), y, row.said)]


def _short(name: str) -> str:
    """A name of at most so many characters: its parameters give way first.

    >>> _short("compile(mode=default, freezing=True)"), _short("threads(num=1)")
    ('compile(mode=default, freezin…', 'threads(num=1)')
    """
    return name if len(name) <= NAME_CHARACTERS else f"{name[: NAME_CHARACTERS - 1]}…"
