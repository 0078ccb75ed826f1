"""Graphs of compiled code as images that a page carries."""

from __future__ import annotations

import base64
import re
from typing import NamedTuple

from pyrometer.compiler.graphs.layout import lay_out
from pyrometer.compiler.graphs.record import Graph
from pyrometer.compiler.graphs.svg import graph_svg
from pyrometer.compiler.report import CompileReport
from pyrometer.quantity import counted
from pyrometer.report.facts.compile_inside import STAGES

PICTURED = ("dynamo", "forward", "backward", "post_grad", "post_grad_backward")
"""Stages that are drawn."""

MOST_PICTURES = 8

MOST_PICTURE_BYTES = 240_000
"""Of all pictures as the page carries them; the graphs are in the page's data as well, and drawn from there by its script."""

_TITLES = re.compile(r"<title>[^<]*</title>")


class Picture(NamedTuple):
    """A graph as an image that the page carries."""

    title: str
    source: str  # data URL: the drawing has styles of its own, which the page's policy would refuse
    width: int


def pictures(report: CompileReport) -> list[Picture]:
    """The first graphs of a compilation, as far as they have room."""
    marks = {f"{graph_break.file}:{graph_break.line}": graph_break.reason for graph_break in report.breaks}
    drawn = [graph for graph in report.graph_records if graph.stage in PICTURED and graph.num_ops > 1]
    shown = list[Picture]()
    room = MOST_PICTURE_BYTES
    for graph in drawn[:MOST_PICTURES]:
        picture = _picture(graph, marks)
        room -= len(picture.source)
        if room >= 0 or not shown:
            shown.append(picture)
    return shown


def _picture(graph: Graph, marks: dict[str, str]) -> Picture:
    layout = lay_out(graph)
    unspoken = _TITLES.sub("", graph_svg(layout, marks=marks))  # an image is not hovered over
    drawn = base64.b64encode(unspoken.encode()).decode()
    title = (
        f"{graph.compile_id}, {STAGES.get(graph.stage, graph.stage)}: {counted(graph.num_ops, 'operation')}"
    )
    return Picture(title, f"data:image/svg+xml;base64,{drawn}", round(layout.width))
