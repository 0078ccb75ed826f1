"""A drawing as one image: where a notebook is not trusted, on GitHub for one, drawings in the page lose their shapes."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
from functools import cache

from markupsafe import Markup

from pyrometer.report.charts.svg import tag
from pyrometer.report.inline import asset

WIDTH = 800
MARGIN = 8
COLOURS = (
    "#e69f00", "#56b4e9", "#0072b2", "#cc79a7", "#009e73", "#a8adb5", "#d55e00", "#7d6b00", "#7a5ba6", "#b9a77c",
)  # fmt: skip
"""Of the parts of a whole, by their slots; they can be told apart on light and dark ground, also by the colour-blind."""


def picture(drawing: Markup) -> Markup:
    """An image that holds a chart with its axis, its colours and its words; it needs nothing from around it.

    Args:
        drawing: of `charts.svg.chart`.
    """
    frame = ET.fromstring(str(drawing))  # noqa: S314 - our own, with all that is not ours escaped
    plot, left, label = frame[-1], 0.0, str(frame[-1].get("aria-label"))
    if len(frame) > 1:
        left = float(frame[0].get("width", "0")) + MARGIN
    height = float(plot.get("height", "0"))
    plot.attrib |= {"x": f"{left:g}", "width": f"{WIDTH - left - MARGIN:g}", "overflow": "visible"}
    size = {"width": str(WIDTH), "height": f"{height:g}", "viewBox": f"0 0 {WIDTH} {height:g}"}
    whole = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size})
    ET.SubElement(whole, "style").text = _style()
    whole.extend(frame)
    data = base64.b64encode(ET.tostring(whole)).decode()
    return tag("img", alt=label, title=label, width=WIDTH, src=f"data:image/svg+xml;base64,{data}")


@cache
def _style() -> str:
    parts = "".join(f".phase-{slot} {{ fill: {colour}; }}\n" for slot, colour in enumerate(COLOURS))
    return asset("picture.css") + parts
