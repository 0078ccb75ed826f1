"""A layered drawing of a graph: the method of Sugiyama, Tagawa and Toda, in plain Python.

Rows by longest paths; long lines become chains of bends; medians keep crossings few; boxes then align with their neighbours.
Everything is deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.compiler.graphs.collapse import MAX_BOXES, Collapse, Collapsed, collapse_graph
from pyrometer.compiler.graphs.coordinates import assign_centres
from pyrometer.compiler.graphs.drawing import BEND_WIDTH, Drawing, box_text
from pyrometer.compiler.graphs.grid import Grid
from pyrometer.compiler.graphs.labels import graph_title
from pyrometer.compiler.graphs.layering import assign_layers
from pyrometer.compiler.graphs.ordering import order_rows
from pyrometer.compiler.graphs.record import Graph, GraphLayout
from pyrometer.errors import InputError

_GAP = 18.0
_MANY_RESULTS = 8
_FAR = 3
"""Rows that a line to the output may span where there are many results."""
_COLLAPSE = ("auto", "none", "module", "line")


def lay_out(graph: Graph, *, collapse: Collapse = "auto", max_boxes: int = MAX_BOXES) -> GraphLayout:
    """Where to draw every node of a graph.

    Args:
        graph: the graph, or one of its subgraphs.
        collapse: `none` draws every operation; `module` and `line` put together what comes from one module or line of
            the user; `auto` draws every operation of a small graph, and of a large one as many modules as fit.
        max_boxes: how many boxes `auto` draws at most.

    Raises:
        InputError: `collapse` is none of these, or `max_boxes` is less than 1.
    """
    if collapse not in _COLLAPSE:
        raise InputError(f"collapse={collapse!r}: one of {', '.join(_COLLAPSE)}")
    if max_boxes < 1:
        raise InputError(f"max_boxes={max_boxes}: a drawing has at least 1 box; {MAX_BOXES} are legible")
    shown = collapse_graph(graph, collapse, max_boxes)
    layers = assign_layers(len(shown.boxes), shown.edges)
    shown, results = _without_far_results(shown, layers)
    grid = Grid(layers, shown.edges)
    texts = [box_text(nodes, shown) for nodes in shown.boxes]
    widths = [text.width for text in texts] + [BEND_WIDTH] * (len(grid.layers) - grid.num_boxes)
    rows = order_rows(grid.with_rows(grid.rows))
    centres = assign_centres(grid.with_rows(rows), widths, _GAP, grid.is_bend)
    drawing = Drawing(grid, texts, centres)
    return GraphLayout(
        title=graph_title(graph),
        boxes=drawing.boxes(shown, results),
        edges=drawing.edges(shown),
        width=drawing.width,
        height=drawing.height,
        collapsed_by=shown.by,
        num_nodes=len(graph.nodes),
    )


def _without_far_results(shown: Collapsed, layers: Sequence[int]) -> tuple[Collapsed, dict[int, int]]:
    """Gradients leave everywhere: where many do, far lines to the output become a number in their box."""
    output = next(
        (box for box, nodes in enumerate(shown.boxes) if any(node.op == "output" for node in nodes)), None
    )
    entering = [edge for edge in shown.edges if edge[1] == output]
    far = {edge for edge in entering if layers[edge[1]] - layers[edge[0]] > _FAR}
    if len(entering) <= _MANY_RESULTS or not far:
        return shown, {}
    kept = {edge: nodes for edge, nodes in shown.edges.items() if edge not in far}
    return shown._replace(edges=kept), {edge[0]: len(shown.edges[edge]) for edge in far}
