"""From the centres of boxes to a drawing: sizes, rows, and lines that pass between boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyrometer.compiler.graphs.collapse import Collapsed
from pyrometer.compiler.graphs.grid import Grid
from pyrometer.compiler.graphs.labels import (
    box_kind,
    box_label,
    box_owner,
    box_tooltip,
    common_text,
    main_nodes,
)
from pyrometer.compiler.graphs.modules import common_module
from pyrometer.compiler.graphs.record import GraphNode, LayoutBox, LayoutEdge
from pyrometer.text import shortened

BEND_WIDTH = 6.0
_MARGIN = 16.0
_ROW_GAP = 30.0
_HEIGHT = 40.0
LOW_HEIGHT = 26.0
PADDING = 22.0
LABEL_LENGTH = 34
_DETAIL_LENGTH = 44
_OWNER_LENGTH = 24
# Widest common fonts, so that text stays within its box whatever the reader's machine has.
BOLD_CHAR = 8.0
MONO_CHAR = 6.4
_PORT_STEP = 14.0


class BoxText(NamedTuple):
    """What is written in a box, and how large that makes it."""

    label: str
    detail: str
    owner: str
    width: float
    height: float


def box_text(nodes: Sequence[GraphNode], shown: Collapsed) -> BoxText:
    """The lines of a box, cut to a length that is legible."""
    label, detail = box_label(nodes, shown.by, shown.saved)
    label, detail = shortened(label, LABEL_LENGTH), shortened(detail, _DETAIL_LENGTH)
    owner = shortened(box_owner(nodes), _OWNER_LENGTH, tail=_OWNER_LENGTH - 1)
    first = len(label) * BOLD_CHAR + (len(owner) + 1) * MONO_CHAR * bool(owner)
    width = max(first, len(detail) * MONO_CHAR, 2 * PADDING) + PADDING
    return BoxText(label, detail, owner, round(width), _HEIGHT if detail else LOW_HEIGHT)


class Drawing:
    """Everything in its place, in CSS pixels from the upper left corner."""

    def __init__(self, grid: Grid, texts: Sequence[BoxText], centres: Sequence[float]) -> None:
        widths = [text.width for text in texts] + [BEND_WIDTH] * (len(centres) - len(texts))
        left = min((centre - width / 2 for centre, width in zip(centres, widths, strict=True)), default=0.0)
        right = max((centre + width / 2 for centre, width in zip(centres, widths, strict=True)), default=0.0)
        self._grid, self._texts = grid, texts
        self._centres = [centre - left + _MARGIN for centre in centres]
        self._tops, self._heights, bottom = self._rows()
        self.width = round(right - left + 2 * _MARGIN, 1)
        self.height = round(bottom + _MARGIN, 1)

    def boxes(self, shown: Collapsed, results: Mapping[int, int]) -> list[LayoutBox]:
        """Every box; `results` are those that leave it without a line."""
        leaving: list[dict[str, GraphNode]] = [{} for _ in shown.boxes]
        for (source, _), nodes in shown.edges.items():
            leaving[source] |= {node.name: node for node in nodes}
        return [
            self._box(number, nodes, list(leaving[number].values()), results.get(number, 0))
            for number, nodes in enumerate(shown.boxes)
        ]

    def edges(self, shown: Collapsed) -> list[LayoutEdge]:
        """Every line."""
        ports = self._ports()
        return [
            LayoutEdge(
                source=_name(pair[0]),
                target=_name(pair[1]),
                points=self._points(pair, ports[pair]),
                nodes=[node.name for node in shown.edges[pair]],
                num_bytes=_total_bytes(shown.edges[pair]),
            )
            for pair in sorted(shown.edges)
        ]

    def _rows(self) -> tuple[list[float], list[float], float]:
        """Top and height of each row, and the end; where lines lean far, rows stand further apart."""
        tops, heights, top, bottom = list[float](), list[float](), _MARGIN, _MARGIN
        for row in self._grid.rows:
            leans = [
                self._centres[one] - self._centres[near] for one in row for near in self._grid.below[one]
            ]
            boxes = [self._texts[vertex].height for vertex in row if not self._grid.is_bend(vertex)]
            tops.append(top)
            heights.append(max(boxes, default=BEND_WIDTH))
            bottom = top + heights[-1]
            top = bottom + _ROW_GAP + min(max(map(abs, leans), default=0.0) * 0.08, 40.0)
        return tops, heights, bottom

    def _box(
        self, number: int, nodes: Sequence[GraphNode], leaving: Sequence[GraphNode], num_results: int
    ) -> LayoutBox:
        text, layer, main = self._texts[number], self._grid.layers[number], main_nodes(nodes)
        dtypes = [node.dtype for node in nodes if node.op != "input" and node.dtype]
        return LayoutBox(
            name=_name(number),
            label=text.label,
            detail=text.detail,
            owner=text.owner,
            kind=box_kind(nodes),
            nodes=[node.name for node in nodes],
            tooltip=box_tooltip(nodes),
            layer=layer,
            x=round(self._centres[number] - text.width / 2, 1),
            y=round(self._top(number), 1),
            width=text.width,
            height=text.height,
            dtype=common_text(dtypes or [main[0].dtype]),
            group=common_text([node.group for node in main]),
            module=common_module([node.module for node in main]),
            places=list(dict.fromkeys(f"{node.file}:{node.line}" for node in nodes if node.file)),
            num_bytes=_total_bytes(leaving) if leaving else None,
            num_results=num_results,
        )

    def _top(self, number: int) -> float:
        layer = self._grid.layers[number]
        return self._tops[layer] + (self._heights[layer] - self._texts[number].height) / 2

    def _ports(self) -> dict[tuple[int, int], float]:
        """Where each line enters its target: side by side along the upper edge, in the order in which they arrive."""
        entering: dict[int, list[tuple[float, int]]] = {}
        for (source, target), bends in self._grid.routes.items():
            entering.setdefault(target, []).append((self._centres[bends[-1] if bends else source], source))
        ports = {}
        for target, arrivals in entering.items():
            step = min(_PORT_STEP, 0.7 * self._texts[target].width / len(arrivals))
            for place, (_, source) in enumerate(sorted(arrivals)):
                ports[source, target] = self._centres[target] + step * (place - (len(arrivals) - 1) / 2)
        return ports

    def _points(self, pair: tuple[int, int], port: float) -> list[tuple[float, float]]:
        """From the lower edge of the source, straight past the boxes of each row, to the upper edge of the target."""
        source, target = pair
        points = [(self._centres[source], self._top(source) + self._texts[source].height)]
        for bend in self._grid.routes[pair]:
            layer = self._grid.layers[bend]
            top = self._tops[layer]
            points += [(self._centres[bend], top), (self._centres[bend], top + self._heights[layer])]
        points.append((port, self._top(target)))
        return [(round(x, 1), round(y, 1)) for x, y in points]


def _name(number: int) -> str:
    return f"box{number}"


def _total_bytes(nodes: Sequence[GraphNode]) -> int | None:
    sizes = [node.num_bytes for node in nodes if node.num_bytes is not None]
    return sum(sizes) if len(sizes) == len(nodes) else None
