"""What is written in a box and in its tooltip."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyrometer.compiler.graphs.annotation import short_dtype
from pyrometer.compiler.graphs.modules import common_module
from pyrometer.compiler.graphs.ops import op_kind, op_name
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.place import place_text
from pyrometer.quantity import counted, format_bytes

_TOOLTIP_NODES = 40


def shape_text(node: GraphNode) -> str:
    """The type of a value, short.

    >>> shape_text(GraphNode(name="x", op="input", dtype="float32", shape=["2", "s0"]))
    'f32[2, s0]'
    """
    if node.symbol:
        return node.symbol
    return f"{short_dtype(node.dtype)}[{', '.join(node.shape)}]" if node.dtype else ""


def node_title(node: GraphNode) -> str:
    """What a node is, in a word or two.

    >>> node_title(GraphNode(name="mm", op="call", target="aten.mm.default"))
    'mm'
    """
    if node.op != "call":
        return node.parameter or node.name
    return op_name(node.target) if node.target != node.module else node.target


def graph_title(graph: Graph) -> str:
    """Which graph it is, in a line.

    >>> graph_title(Graph(compile_id="0/0", stage="post_grad_backward", nodes=[], num_ops=0))
    '0/0 post grad backward'
    """
    stage = graph.stage.replace("_", " ")
    return " ".join(part for part in (graph.compile_id, stage, graph.name) if part)


def main_nodes(nodes: Sequence[GraphNode]) -> list[GraphNode]:
    """The nodes of a box without the inputs that stand in it and without the unpacking of results."""
    calls = [node for node in nodes if node.op == "call" and node.target != "operator.getitem"]
    return calls or [node for node in nodes if node.op == "call"] or list(nodes)


def box_label(nodes: Sequence[GraphNode], by: str, saved: Collection[str] = ()) -> tuple[str, str]:
    """The two lines of a box; `saved` are the results that only the backward graph needs."""
    main = main_nodes(nodes)
    output = next((node for node in nodes if node.op == "output"), None)
    if output is not None and (by != "range" or len(nodes) == 1):
        kept = sum(name in saved for name in output.inputs)
        return output.target or "output", counted(len(output.inputs) - kept, "result") + (
            f", {kept} saved" if kept else ""
        )
    if len(main) == 1:
        return node_title(main[0]), _result_text(nodes, main[0])
    if main[0].op == "input":
        return f"{len(main)} {main[0].role or 'input'}s", ""
    title, place = _common_title(main, by)
    counts = _op_counts(main)
    ops = f"{len(main)} ops" + (f": {counts}" if title != counts else "")
    return title, " · ".join(part for part in (place, ops) if part)


def box_tooltip(nodes: Sequence[GraphNode]) -> str:
    """Every node of a box, a line each, with its user line behind."""
    lines = [_node_line(node) for node in nodes[:_TOOLTIP_NODES]]
    if len(nodes) > _TOOLTIP_NODES:
        lines.append(f"… and {len(nodes) - _TOOLTIP_NODES} more")
    sources = dict.fromkeys(f"{node.file}:{node.line}  {node.source}".rstrip() for node in nodes if node.file)
    return "\n".join([*lines, *list(sources)[:6]])


def box_kind(nodes: Sequence[GraphNode]) -> str:
    """The class that the operations of a box have in common, or that of its one costly operation; `mixed` otherwise."""
    kinds = list(dict.fromkeys(op_kind(node) for node in main_nodes(nodes)))
    if any(node.op == "output" for node in nodes):
        return "output"
    if len(kinds) == 1:
        return kinds[0]
    costly = [kind for kind in kinds if kind in {"matmul", "convolution", "attention"}]
    light = all(kind in {"view", "copy", "creation", "symbol"} for kind in kinds if kind not in costly)
    return costly[0] if len(costly) == 1 and light else "mixed"


def common_text(texts: Sequence[str]) -> str:
    """What all have in common; empty where they differ."""
    found = set(texts)
    return found.pop() if len(found) == 1 else ""


def _result_text(nodes: Sequence[GraphNode], main: GraphNode) -> str:
    if main.dtype or main.symbol:
        return shape_text(main)
    parts = [
        shape_text(node) for node in nodes if main.name in node.inputs and node.target == "operator.getitem"
    ]
    if not parts:
        return ""
    return parts[0] if len(parts) == 1 else f"{parts[0]}, +{len(parts) - 1}"


def _common_title(nodes: Sequence[GraphNode], by: str) -> tuple[str, str]:
    """What holds several operations: their module, with the line if it is one; else their lines."""
    module = common_module([node.module for node in nodes])
    places = list(dict.fromkeys(place_text(node.file, node.line) for node in nodes if node.file))
    if by == "module" and module:
        return module, places[0] if len(places) == 1 else ""
    if len(places) == 1:
        return places[0], ""
    files = {place.rpartition(":")[0] for place in places}
    if by == "range" and module != nodes[0].module != nodes[-1].module:
        return " – ".join(part for part in (nodes[0].module, nodes[-1].module) if part), ""
    if len(files) == 1:
        lines = [int(place.rpartition(":")[2]) for place in places]
        return f"{files.pop()}:{min(lines)}–{max(lines)}", ""
    return module or _op_counts(nodes), ""


def box_owner(nodes: Sequence[GraphNode]) -> str:
    """The module whose parameters one operation reads; its class and its result do not say it."""
    main = main_nodes(nodes)
    owners = {node.module for node in nodes if node.role in {"parameter", "buffer"} and node.module}
    return owners.pop() if len(owners) == 1 and len(main) == 1 and main[0].op == "call" else ""


def _op_counts(nodes: Sequence[GraphNode]) -> str:
    counts: dict[str, int] = {}
    for node in nodes:
        counts[node_title(node)] = counts.get(node_title(node), 0) + 1
    ordered = sorted(counts, key=lambda name: -counts[name])
    return ", ".join(f"{counts[name]} {name}" if counts[name] > 1 else name for name in ordered)


def _node_line(node: GraphNode) -> str:
    size = format_bytes(node.num_bytes) if node.num_bytes is not None else ""
    owner = node.module if node.op == "input" else ""
    parts = [f"{node.name} = {node.target or node.op}", shape_text(node), size, node.role, owner]
    return "  ".join(part for part in parts if part)
