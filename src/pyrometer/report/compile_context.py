"""What the page about a compilation shows: cards of breaks, phases as a bar, graphs as pictures."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyrometer.compiler.graphs.layout import lay_out
from pyrometer.compiler.graphs.record import Graph
from pyrometer.compiler.graphs.svg import graph_svg
from pyrometer.compiler.report import CompileReport
from pyrometer.quantity import Seconds, counted, format_seconds
from pyrometer.report.charts.shares import Share, share_bar
from pyrometer.report.charts.steps import steps_chart
from pyrometer.report.facts import compile as of_compile
from pyrometer.report.facts import compile_breaks
from pyrometer.report.facts.compile_inside import STAGES
from pyrometer.report.facts.compile_kernels import kernel_section
from pyrometer.report.facts.layout import Section

PICTURED = ("dynamo", "forward", "backward", "post_grad", "post_grad_backward")
"""Stages that are drawn."""

MOST_PICTURES = 8

MOST_PICTURE_BYTES = 240_000
"""Of all pictures as the page carries them; the graphs are in the page's data as well, and drawn from there by its script."""

MOST_ROWS = 20
"""Rows of a table on the page; the document holds more."""

OWN_SLOTS = (0, 1, 2, 3, 4, 6, 7, 8)
"""Colours of the longest phases, each of which has one of its own."""

REST, REST_SLOT = "other phases", 9
"""All others are one part."""

WHOLE_SLOT = 5
"""Colour of what is no phase, such as a whole compilation."""


def compile_parts(report: CompileReport, sections: Sequence[Section]) -> dict[str, Any]:
    """Fills `compile_sections.html.j2`."""
    shares = _phases(report)
    kernels = kernel_section(report)
    return {
        "cards": compile_breaks.cards(report),
        "headline": of_compile.headline(report),
        "subtitle": of_compile.subtitle(report),
        "exactness": compile_breaks.EXACTNESS,
        "sections": [
            section.shortened(MOST_ROWS) for section in (*sections, *([kernels] if kernels else []))
        ],
        "shares": shares,
        "bar": share_bar(shares, "the time that compiling took") if shares else None,
        "steps": steps_chart(report, phase_slots(report.cost.phases_s), REST_SLOT, WHOLE_SLOT),
        "pictures": _pictures(report),
    }


_TITLES = re.compile(r"<title>[^<]*</title>")


class Picture(NamedTuple):
    """A graph as an image that the page carries."""

    title: str
    source: str  # data URL: the drawing has styles of its own, which the page's policy would refuse
    width: int


def _pictures(report: CompileReport) -> list[Picture]:
    marks = {f"{one.file}:{one.line}": one.reason for one in report.breaks}
    drawn = [graph for graph in report.graph_records if graph.stage in PICTURED and graph.num_ops > 1]
    pictures = list[Picture]()
    room = MOST_PICTURE_BYTES
    for graph in drawn[:MOST_PICTURES]:
        picture = _picture(graph, marks)
        room -= len(picture.source)
        if room >= 0 or not pictures:
            pictures.append(picture)
    return pictures


def _picture(graph: Graph, marks: dict[str, str]) -> Picture:
    layout = lay_out(graph)
    unspoken = _TITLES.sub("", graph_svg(layout, marks=marks))  # an image is not hovered over
    drawn = base64.b64encode(unspoken.encode()).decode()
    title = (
        f"{graph.compile_id}, {STAGES.get(graph.stage, graph.stage)}: {counted(graph.num_ops, 'operation')}"
    )
    return Picture(title, f"data:image/svg+xml;base64,{drawn}", round(layout.width))


def phase_slots(phases_s: Mapping[str, Seconds]) -> dict[str, int]:
    """Colours of the phases that have one of their own, the longest first; all others share `REST_SLOT`.

    >>> phase_slots({"guards": 0.5, "lowering": 2.0, "autotuning": 0.0})
    {'lowering': 0, 'guards': 1}
    """
    longest = sorted((name for name in phases_s if phases_s[name] > 0), key=lambda name: -phases_s[name])
    return dict(zip(longest, OWN_SLOTS, strict=False))


def _phases(report: CompileReport) -> list[Share]:
    phases_s = report.cost.phases_s
    total = sum(phases_s.values())
    slots = phase_slots(phases_s)
    shares = [
        Share(name, phases_s[name] / total, format_seconds(phases_s[name]), slot)
        for name, slot in slots.items()
    ]
    rest = sum(spent for name, spent in phases_s.items() if name not in slots)
    return [*shares, Share(REST, rest / total, format_seconds(rest), REST_SLOT)] if rest else shares
