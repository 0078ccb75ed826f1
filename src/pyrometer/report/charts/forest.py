"""A comparison: each ratio with its interval, against no difference and the margin, over the blocks it rests on."""

from __future__ import annotations

import math
from typing import NamedTuple

from markupsafe import Markup

from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.quantity import counted
from pyrometer.report.charts.scale import Scale, fit, plain
from pyrometer.report.charts.svg import AXIS_HEIGHT, at, chart, shape, tag, x_axis
from pyrometer.report.facts.verdict import ratio_words

TOP = 22.0
ROW = 46.0
BLOCKS = 64.0
TRIMMED = 0.02


class Row(NamedTuple):
    """One ratio with its interval."""

    name: str
    ratio: float
    low: float | None
    high: float | None


def ratio_scale(verdict: Verdict) -> Scale:
    """The axis of ratios, by logarithm, so that twice and half are equally far from 1.

    The outermost 2 % of the blocks may lie beyond its ends.
    """
    v = verdict
    blocks = sorted(math.exp(value) for value in v.log_ratios)
    cut = math.floor(len(blocks) * TRIMMED)
    values = [v.ratio, 1 - v.margin * 1.4, 1 + v.margin * 1.4, *blocks[cut : len(blocks) - cut]]
    ends = [v.ci_low, v.ci_high, *(end for tail in v.tails for end in (tail.ci_low, tail.ci_high))]
    values += [end for end in ends if end is not None]
    return fit([value for value in values if 0 < value < math.inf], log_above=1.0)


def forest(verdict: Verdict) -> Markup:
    """Draw the ratios of a verdict and, below, one dot per block."""
    v = verdict
    scale = ratio_scale(v)
    rows = [Row("step", v.ratio, v.ci_low, v.ci_high)]
    rows += [Row(f"P{tail.quantile * 100:g}", tail.ratio, tail.ci_low, tail.ci_high) for tail in v.tails]
    bottom = TOP + len(rows) * ROW + (BLOCKS if v.log_ratios else 0.0)
    parts = [
        _margin(v, scale, bottom),
        *x_axis(scale, plain, TOP, bottom, most=7),
        *_directions(scale, bottom),
    ]
    for index, row in enumerate(rows):
        parts += _row(row, scale, TOP + index * ROW, v.outcome if index == 0 else "tail")
    parts += _blocks(v, scale, TOP + len(rows) * ROW)
    return chart(_description(v), parts, bottom + AXIS_HEIGHT)


def _margin(v: Verdict, scale: Scale, bottom: float) -> Markup:
    start, end = scale(1 - v.margin), scale(1 + v.margin)
    return tag("rect", cls="margin", x=at(start), width=at(end - start), y=TOP, height=bottom - TOP)


def _directions(scale: Scale, bottom: float) -> list[Markup]:
    one = scale(1.0)
    return [
        tag("line", cls="one", x1=at(one), x2=at(one), y1=TOP - 4, y2=bottom),
        tag("text", "← faster", cls="tick", x=at(one), dx=-8, y=TOP - 10, text_anchor="end")
        if one > 0.2
        else Markup(),
        tag("text", "slower →", cls="tick", x=at(one), dx=8, y=TOP - 10) if one < 0.8 else Markup(),
    ]


def _row(row: Row, scale: Scale, top: float, cls: str) -> list[Markup]:
    y = top + 32
    label = f"{row.name}  {ratio_words(row.ratio, row.low, row.high)}"
    parts = [tag("text", label, cls="label", x="0%", y=top + 16)]
    if row.low is not None and row.high is not None:
        ends = at(scale(row.low)), at(scale(row.high))
        parts.append(tag("line", cls=f"whisker {cls}", x1=ends[0], x2=ends[1], y1=y, y2=y))
        parts += [tag("line", cls=f"whisker {cls}", x1=x, x2=x, y1=y - 5, y2=y + 5) for x in ends]
    return [*parts, shape(f"estimate {cls}", "M0 -7 L6 0 L0 7 L-6 0 Z", scale(row.ratio), y)]


def _blocks(v: Verdict, scale: Scale, top: float) -> list[Markup]:
    noun = "block" if v.num_processes is None else "process"
    dots = []
    for index, value in enumerate(v.log_ratios):
        # A fixed pattern of heights keeps neighbours apart and the picture reproducible.
        y = top + 24 + (index * 7 % 11) * 3.0
        dots.append(tag("circle", cls="block", cx=at(scale(math.exp(value))), cy=y, r=2.4))
    label = [tag("text", counted(len(dots), noun), cls="label", x="0%", y=top + 16)] if dots else []
    return [*label, *dots]


def _description(v: Verdict) -> str:
    return (
        f"Ratio of {v.candidate} to {v.baseline}: {ratio_words(v.ratio, v.ci_low, v.ci_high)}, "
        f"margin ±{v.margin * 100:.3g} %, {counted(v.num_blocks, 'block')}"
    )
