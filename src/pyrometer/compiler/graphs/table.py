"""A graph as plain text: a line per operation, the user's line as a heading above what it became."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyrometer.compiler.graphs.labels import graph_title, shape_text
from pyrometer.compiler.graphs.read import unpackings
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.place import place_text
from pyrometer.quantity import counted, format_bytes
from pyrometer.text import shortened

_NAME_LENGTH = 32
_CALL_LENGTH = 64
_NARROW = {"torch.nn.functional.": "F.", "operator.": "", "Tensor.": "."}
_COLUMNS = 4


def graph_text(graph: Graph) -> str:
    """A graph as a compact table, to be read in a terminal; subgraphs follow.

    Operations are in the order in which they run, below the line of the user's program that they come from: name, what is
    called with which nodes, type, size and module of the result. Where there are several results, their names stand in place of
    its own, with the type of the first and the size of all.

    >>> node = GraphNode(name="add", op="call", target="aten.add.Tensor", dtype="float32", shape=["4"], num_bytes=16)
    >>> print(graph_text(Graph(compile_id="0/0", stage="forward", nodes=[node], num_ops=1)))
    0/0 forward: 1 operation, 0 inputs
    (no user line)
      add  aten.add.Tensor()  f32[4]  16 B
    """
    inputs = [node for node in graph.nodes if node.op in {"input", "attribute"}]
    rows = list(_rows(graph.nodes))
    widths = [max((len(row[column]) for _, row in rows if row), default=0) for column in range(_COLUMNS)]
    lines = [
        f"{graph_title(graph)}: {counted(graph.num_ops, 'operation')}, {_input_count(inputs)}",
        *_inputs(inputs),
    ]
    for heading, row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        lines.append(heading or f"  {'  '.join(cells)}".rstrip())
    lines += [
        f"  return {shortened(', '.join(node.inputs), _CALL_LENGTH)}"
        for node in graph.nodes
        if node.op == "output"
    ]
    return "\n".join([*lines, *(f"\n{graph_text(inner)}" for inner in graph.subgraphs)])


def _rows(nodes: Sequence[GraphNode]) -> Iterator[tuple[str, list[str]]]:
    """A heading where the user's line changes, then the cells of each operation, its parts with it."""
    graph_nodes = {node.name: node for node in nodes}
    unpacked = unpackings(nodes)
    parts: dict[str, list[GraphNode]] = {}
    for name, source in unpacked.items():
        parts.setdefault(source, []).append(graph_nodes[name])
    before: tuple[str, int] | None = None
    for node in (node for node in nodes if node.op == "call" and node.name not in unpacked):
        if (node.file, node.line) != before:
            before = (node.file, node.line)
            yield (
                (
                    f"{place_text(node.file, node.line)}  {node.source}".rstrip()
                    if node.file
                    else "(no user line)"
                ),
                [],
            )
        names = ", ".join(part.name for part in parts.get(node.name, ())) or node.name
        made = _made(parts.get(node.name, [node]))
        yield "", [shortened(names, _NAME_LENGTH), _call(node, graph_nodes), made, node.module]


def _made(results: Sequence[GraphNode]) -> str:
    """The type of the first result, and the size of all."""
    sizes = [node.num_bytes for node in results if node.num_bytes is not None]
    size = format_bytes(sum(sizes)) if sizes and len(sizes) == len(results) else ""
    return "  ".join(part for part in (shape_text(results[0]), size) if part)


def _call(node: GraphNode, nodes: Mapping[str, GraphNode]) -> str:
    target = node.target
    for prefix, short in _NARROW.items():
        if target.startswith(prefix):
            target = short + target[len(prefix) :]
            break
    read = ", ".join(_argument(node, nodes[name]) if name in nodes else name for name in node.inputs)
    return f"{target}({shortened(read, max(_CALL_LENGTH - len(target), 16))})"


def _argument(reader: GraphNode, node: GraphNode) -> str:
    """A parameter by its own name where the reader is of the same module."""
    if not node.parameter:
        return node.name
    own = node.parameter.removeprefix(f"{reader.module}.")
    return own if reader.module and own != node.parameter else node.parameter


def _inputs(inputs: Sequence[GraphNode]) -> Iterator[str]:
    """Inputs proper a line each; parameters and buffers by module in one."""
    owned: dict[str, list[str]] = {}
    for node in inputs:
        if node.parameter:
            owner, _, name = node.parameter.rpartition(".")
            owned.setdefault(owner or "(model)", []).append(f"{name} {shape_text(node)}")
        else:
            text = "  ".join(part for part in (node.name, shape_text(node), node.role) if part)
            yield f"  in  {text}"
    for module, shapes in owned.items():
        yield f"  of  {module}: {', '.join(shapes)}"


def _input_count(inputs: Sequence[GraphNode]) -> str:
    sizes = [node.num_bytes for node in inputs if node.num_bytes is not None]
    return counted(len(inputs), "input") + (f" of {format_bytes(sum(sizes))}" if sizes else "")
