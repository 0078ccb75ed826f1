"""A graph in the language of Graphviz, for its own layouts and for other tools."""

from __future__ import annotations

from pyrometer.compiler.graphs.collapse import MAX_BOXES, Collapse, collapse_graph
from pyrometer.compiler.graphs.labels import (
    box_kind,
    box_label,
    box_owner,
    box_tooltip,
    graph_title,
    shape_text,
)
from pyrometer.compiler.graphs.record import Graph

_COLOURS = {
    "matmul": "#f3d9b8",
    "convolution": "#f2cdbd",
    "attention": "#e4dfb4",
    "normalization": "#c2e0d6",
    "reduction": "#dad3ea",
    "pooling": "#dad3ea",
    "pointwise": "#c9dff0",
    "mixed": "#c9dff0",
    "copy": "#cfe6f2",
    "creation": "#cfe6f2",
    "random": "#ebd4e2",
    "collective": "#ebd4e2",
    "triton": "#ebd4e2",
}
_OTHER = "#ededed"
_TERMINALS = frozenset({"input", "output", "attribute"})


def graph_dot(graph: Graph, *, collapse: Collapse = "auto", max_boxes: int = MAX_BOXES) -> str:
    """A graph as DOT; `dot -Tsvg` draws it.

    Args:
        graph: the graph.
        collapse: as in `lay_out`.
        max_boxes: as in `lay_out`.

    >>> print(graph_dot(Graph(compile_id="0/0", stage="dynamo", nodes=[], num_ops=0)))
    digraph "0/0 dynamo" {
      rankdir=TB
      node [shape=box style="rounded,filled" fontname="Helvetica" fontsize=11 color="#8a8f98"]
      edge [fontname="Helvetica" fontsize=9 color="#8a8f98"]
    }
    """
    shown = collapse_graph(graph, collapse, max_boxes)
    lines = [
        f"digraph {_quoted(graph_title(graph))} {{",
        "  rankdir=TB",
        '  node [shape=box style="rounded,filled" fontname="Helvetica" fontsize=11 color="#8a8f98"]',
        '  edge [fontname="Helvetica" fontsize=9 color="#8a8f98"]',
    ]
    for number, nodes in enumerate(shown.boxes):
        label, detail = box_label(nodes, shown.by, shown.saved)
        kind = box_kind(nodes)
        attributes = {
            "label": "\n".join(part for part in (label, box_owner(nodes), detail) if part),
            "tooltip": box_tooltip(nodes),
            "fillcolor": _COLOURS.get(kind, _OTHER),
        } | ({"shape": "ellipse"} if kind in _TERMINALS else {})
        lines.append(f"  box{number} [{_attributes(attributes)}]")
    for (source, target), nodes in sorted(shown.edges.items()):
        passed = ", ".join(f"{node.name} {shape_text(node)}".strip() for node in nodes)
        lines.append(f"  box{source} -> box{target} [{_attributes({'tooltip': passed})}]")
    return "\n".join([*lines, "}"])


def _attributes(values: dict[str, str]) -> str:
    return " ".join(f"{name}={_quoted(value)}" for name, value in values.items())


def _quoted(text: str) -> str:
    """A string of DOT: quotes and backslashes are escaped, lines part at an escape of their own, control characters go."""
    printable = "".join(letter if letter.isprintable() or letter == "\n" else "�" for letter in text)
    escaped = printable.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
