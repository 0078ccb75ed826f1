"""The blocks of a report's graphs: an index, and one block per graph that is decoded when it is opened."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyrometer.compiler.graphs.labels import graph_title, shape_text
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.compiler.report import CompileReport
from pyrometer.place import file_name
from pyrometer.report.facts.compile_inside import STAGES
from pyrometer.report.payloads.block import Block, block_of
from pyrometer.report.payloads.compile_graph import (
    GraphContent,
    GraphEntry,
    GraphIndex,
    NodeColumns,
    PlaceColumns,
)
from pyrometer.report.payloads.compile_levels import PORTS, levels_of, unit_columns, units_of
from pyrometer.report.payloads.compile_marks import LineMark, marks_of
from pyrometer.report.payloads.compile_texts import Texts

MOST_NODES = 20_000
"""Nodes that a page holds, over all graphs."""

MOST_DRAWN_FLAT = 5_000
"""Nodes of graphs above which no further large graph is drawn operation by operation; a joint graph never is, as its halves are."""

_BEFORE = {"before_pre_grad": "dynamo", "pre_grad": "before_pre_grad", "before_post_grad": "post_grad"}
_BEFORE["before_post_grad_backward"] = "post_grad_backward"
"""Stages that often equal another one, and that one."""


def graph_blocks(report: CompileReport, lines: Sequence[LineMark]) -> Iterator[Block]:
    """The blocks `graph/0`, `graph/1`, …, and before them `graphs`; none where there is no graph."""
    kept, same = distinct(report.graph_records)
    contents: list[GraphContent] = []
    entries: list[GraphEntry] = []
    total = 0
    for graph in kept:
        if total + len(graph.nodes) > MOST_NODES:
            continue
        total += len(graph.nodes)
        content = graph_content(graph, lines, flat=total <= MOST_DRAWN_FLAT and graph.stage != "joint")
        entries.append(_entry(graph, content, report, len(contents)))
        contents.append(content)
    if not entries:
        return
    first = max(range(len(entries)), key=lambda one: (entries[one].stage == "dynamo", entries[one].num_ops))
    yield block_of(
        "graphs", GraphIndex(graphs=entries, first=first, same=same, left_out=len(kept) - len(entries))
    )
    for entry, content in zip(entries, contents, strict=True):
        yield block_of(entry.block, content)


def graph_content(graph: Graph, lines: Sequence[LineMark] = (), *, flat: bool = True) -> GraphContent:
    """One graph with all of its levels.

    Args:
        graph: the graph.
        lines: what to mark.
        flat: whether a large graph is also drawn operation by operation.
    """
    texts = Texts()
    units = units_of(graph)
    places, columns = _nodes(graph, texts)
    held = unit_columns(graph, units, texts)
    levels, flat_level = levels_of(graph, units, texts, flat=flat)
    return GraphContent(
        title=graph_title(graph),
        texts=texts.rows,
        nodes=columns,
        places=places,
        units=held,
        levels=levels,
        flat=flat_level,
        marks=marks_of(graph, units, lines),
        ports=PORTS,
    )


def distinct(graphs: Sequence[Graph]) -> tuple[list[Graph], list[str]]:
    """Graphs without stages that equal their neighbour, and the titles of those; subgraphs follow their graph."""
    by_stage = {(graph.compile_id, graph.stage): graph for graph in graphs}
    kept, same = list[Graph](), list[str]()
    for graph in graphs:
        other = by_stage.get((graph.compile_id, _BEFORE.get(graph.stage, "")))
        if other is not None and _signature(other) == _signature(graph):
            same.append(graph_title(graph))
        elif graph.num_ops:
            kept += [graph, *(inner for inner in graph.subgraphs if inner.num_ops)]
    return kept, same


def _signature(graph: Graph) -> list[tuple[str, str, int]]:
    return [(node.target, shape_text(node), len(node.inputs)) for node in graph.nodes if node.op == "call"]


def _entry(graph: Graph, content: GraphContent, report: CompileReport, number: int) -> GraphEntry:
    compiled = next(
        (compilation for compilation in report.compilations if compilation.compile_id == graph.compile_id),
        None,
    )
    stage = STAGES.get(graph.stage, graph.stage.replace("_", " "))
    return GraphEntry(
        block=f"graph/{number}",
        compile_id=graph.compile_id,
        stage=graph.stage,
        stage_title=f"{stage}, {graph.name}" if graph.name else stage,
        function=compiled.function if compiled is not None else "",
        place=f"{file_name(compiled.file)}:{compiled.line}" if compiled is not None and compiled.file else "",
        num_ops=graph.num_ops,
        num_boxes=len(content.units.nodes),
        num_marks=len(content.marks),
    )


def _nodes(graph: Graph, texts: Texts) -> tuple[PlaceColumns, NodeColumns]:
    number = {node.name: place for place, node in enumerate(graph.nodes)}
    places: dict[tuple[str, int], int] = {}
    columns = PlaceColumns(file=[], line=[], source=[])

    def place(node: GraphNode) -> int:
        if not node.file:
            return -1
        key = (node.file, node.line)
        if key not in places:
            places[key] = len(places)
            columns.file.append(texts.row(node.file))
            columns.line.append(node.line)
            columns.source.append(texts.row(node.source.strip()))
        return places[key]

    nodes = graph.nodes
    return columns, NodeColumns(
        name=[node.name for node in nodes],
        target=[texts.row(node.target or node.op) for node in nodes],
        type=[texts.row(shape_text(node)) for node in nodes],
        num_bytes=[-1 if node.num_bytes is None else node.num_bytes for node in nodes],
        module=[texts.row(node.module) for node in nodes],
        place=[place(node) for node in nodes],
        group=[texts.row(node.group) for node in nodes],
        role=[texts.row(node.role) for node in nodes],
        inputs=[[number[name] for name in node.inputs if name in number] for node in nodes],
    )
