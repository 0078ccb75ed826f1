"""Levels of a graph: what is drawn at once, and what opens from there."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from pyrometer.compiler.graphs.annotation import short_dtype
from pyrometer.compiler.graphs.collapse import Collapsed, collapse_graph
from pyrometer.compiler.graphs.drawing import (
    BOLD_CHAR,
    LABEL_LENGTH,
    LOW_HEIGHT,
    MONO_CHAR,
    PADDING,
    BoxText,
    box_text,
)
from pyrometer.compiler.graphs.labels import box_kind, common_text, main_nodes
from pyrometer.compiler.graphs.layout import lay_out
from pyrometer.compiler.graphs.modules import common_module
from pyrometer.compiler.graphs.record import Graph, GraphLayout, GraphNode, LayoutBox
from pyrometer.report.payloads.compile_graph import BoxColumns, Level, PortSizes, Unit
from pyrometer.report.payloads.compile_texts import Texts

MOST_BOXES = 120
"""Of a level; a level that can be moved about holds more than a picture."""

MOST_ARRANGED = 300
"""Boxes that the reader's browser arranges by itself when they are opened."""

PORTS = PortSizes(
    most=10,
    label_length=LABEL_LENGTH,
    height=LOW_HEIGHT,
    padding=PADDING,
    label_char=BOLD_CHAR,
    owner_char=MONO_CHAR,
)
"""Of opened parts, whether they are arranged here or in the reader's browser."""

MOST_FLAT = 2_500
"""Operations that are drawn one by one."""

_FEWEST = 3
"""A level of fewer boxes says nothing about a large graph."""

_SOME = 8
_MOST_SHARE = 0.95
"""A box that holds more of a level divides nothing."""

_STRETCH = 200
_OUT = "<out>"


class Units(NamedTuple):
    """The finest boxes of a graph."""

    shown: Collapsed
    texts: list[BoxText]
    home: dict[str, int]
    """The unit of each node."""
    first: list[str]
    """The node by which each unit is known: it stands in the box in which the unit stands."""


def units_of(graph: Graph) -> Units:
    """Operations, each with the parameters that it alone reads."""
    shown = collapse_graph(graph, "none")
    home = {node.name: unit for unit, nodes in enumerate(shown.boxes) for node in nodes}
    first = [main_nodes(nodes)[0].name for nodes in shown.boxes]
    return Units(shown, [box_text(nodes, shown) for nodes in shown.boxes], home, first)


def unit_columns(graph: Graph, units: Units, texts: Texts) -> Unit:
    """The units as columns; what leaves a unit counts once."""
    number = {node.name: place for place, node in enumerate(graph.nodes)}
    edges = sorted(units.shown.edges.items())
    leaving: dict[int, dict[str, GraphNode]] = {}
    for (source, _), nodes in edges:
        leaving.setdefault(source, {}).update((node.name, node) for node in nodes)
    boxes = [
        _described(nodes, units.texts[unit], list(leaving.get(unit, {}).values()))
        for unit, nodes in enumerate(units.shown.boxes)
    ]
    return Unit(
        boxes=box_columns(boxes, texts),
        nodes=[[number[node.name] for node in nodes] for nodes in units.shown.boxes],
        source=[pair[0] for pair, _ in edges],
        target=[pair[1] for pair, _ in edges],
        num_bytes=[_total(nodes) for _, nodes in edges],
    )


def levels_of(graph: Graph, units: Units, texts: Texts, *, flat: bool) -> tuple[list[Level], int]:
    """All levels, the first one first; and which of them shows every operation.

    Args:
        graph: the graph.
        units: of it.
        texts: takes what is written.
        flat: whether a large graph gets a level of all its operations, too.

    Returns:
        The levels, and the one of all operations: -1 where the browser arranges it, -2 where there is none.
    """
    count = len(units.texts)
    levels: list[Level] = []
    waiting: deque[_Opening] = deque([_Opening("", list(range(count)), -1, 0)])
    while waiting:
        opening = waiting.popleft()
        part = _Part(graph, {}) if opening.parent < 0 else _inside(graph, units, opening.units)
        drawn = _arranged(part.graph, len(opening.units))
        level = _level(drawn, opening.title, units, texts, _Held(frozenset(opening.units), part.outside))
        if opening.parent >= 0:
            levels[opening.parent].opens[opening.box] = len(levels)
        waiting.extend(
            _Opening(texts.rows[level.boxes.label[box]], inside, len(levels), box)
            for box, inside in enumerate(level.units)
            if MOST_ARRANGED < len(inside) < len(opening.units)
        )
        levels.append(level)
    if is_flat(levels[0]):
        return levels, 0
    if count <= MOST_ARRANGED:
        return levels, -1
    if not flat or count > MOST_FLAT:
        return levels, -2
    everything = _Held(frozenset(range(count)), {})
    levels.append(_level(lay_out(graph, collapse="none"), "", units, texts, everything))
    return levels, len(levels) - 1


class _Opening(NamedTuple):
    """A box of a level that is too large for the browser to arrange: it becomes a level."""

    title: str
    units: list[int]
    parent: int  # its level; -1 for the graph itself
    box: int


class _Part(NamedTuple):
    """The graph of an opened box: stubs stand for what lies outside."""

    graph: Graph
    outside: dict[str, list[int]]  # by the name of a stub


class _Held(NamedTuple):
    """What a level is about."""

    units: frozenset[int]
    outside: dict[str, list[int]]


def is_flat(level: Level) -> bool:
    """Whether a level shows every operation."""
    return level.collapsed_by == "none"


def box_columns(boxes: Iterable[LayoutBox], texts: Texts) -> BoxColumns:
    """What is written in boxes, as columns."""
    layout_boxes = list(boxes)
    return BoxColumns(
        label=[texts.row(box.label) for box in layout_boxes],
        detail=[texts.row(box.detail) for box in layout_boxes],
        owner=[texts.row(box.owner) for box in layout_boxes],
        kind=[texts.row(box.kind) for box in layout_boxes],
        dtype=[texts.row(short_dtype(box.dtype)) for box in layout_boxes],
        group=[texts.row(box.group) for box in layout_boxes],
        module=[texts.row(box.module) for box in layout_boxes],
        num_bytes=[-1 if box.num_bytes is None else box.num_bytes for box in layout_boxes],
        width=[box.width for box in layout_boxes],
        height=[box.height for box in layout_boxes],
    )


def _described(nodes: Sequence[GraphNode], text: BoxText, leaving: Sequence[GraphNode]) -> LayoutBox:
    main = main_nodes(nodes)
    total = _total(leaving)
    dtypes = [node.dtype for node in nodes if node.op != "input" and node.dtype]
    return LayoutBox(
        name="",
        label=text.label,
        detail=text.detail,
        owner=text.owner,
        kind=box_kind(nodes),
        nodes=[],
        layer=0,
        x=0.0,
        y=0.0,
        width=text.width,
        height=text.height,
        dtype=common_text(dtypes or [main[0].dtype]),
        group=common_text([node.group for node in main]),
        module=common_module([node.module for node in main]),
        num_bytes=total if leaving and total >= 0 else None,
    )


def _arranged(part: Graph, count: int) -> GraphLayout:
    """Operations where they are few; else modules of one depth, the deepest that fits; else what divides the graph at all."""
    if count > MOST_BOXES:
        level = _of_one_depth(part)
        if level is not None:
            return lay_out(level, collapse="module")
    layout = lay_out(part, max_boxes=MOST_BOXES)
    inside = sum(1 for box in layout.boxes if box.kind not in {"input", "output"})
    largest = max((len(box.nodes) for box in layout.boxes), default=0)
    if count <= MOST_ARRANGED or (inside >= _FEWEST and largest < _MOST_SHARE * len(part.nodes)):
        return layout
    calls = 0
    nodes = []
    for node in part.nodes:
        calls += node.op == "call"
        nodes.append(replace(node, module=f"part {calls // _STRETCH + 1}") if node.op == "call" else node)
    return lay_out(replace(part, nodes=nodes), collapse="module")


def _of_one_depth(part: Graph) -> Graph | None:
    """The graph with modules cut to a depth at which they are some, and not too many, boxes; so that all are of one kind."""
    deepest = max((node.module.count(".") + 1 for node in part.nodes if node.module), default=0)
    for depth in range(deepest, 0, -1):
        nodes = [replace(node, module=".".join(node.module.split(".")[:depth])) for node in part.nodes]
        cut = replace(part, nodes=nodes)
        shown = collapse_graph(cut, "module")
        largest = max(map(len, shown.boxes))
        if _SOME <= len(shown.boxes) <= MOST_BOXES and largest < _MOST_SHARE * len(nodes):
            return cut
    return None


def _level(layout: GraphLayout, title: str, units: Units, texts: Texts, held: _Held) -> Level:
    number = {box.name: place for place, box in enumerate(layout.boxes)}
    own = [[unit for unit in _units_in(box, units) if unit in held.units] for box in layout.boxes]
    return Level(
        title=title,
        collapsed_by=layout.collapsed_by,
        width=layout.width,
        height=layout.height,
        boxes=box_columns(layout.boxes, texts),
        x=[box.x for box in layout.boxes],
        y=[box.y for box in layout.boxes],
        units=own,
        outside=[
            [] if inside else sorted({unit for name in box.nodes for unit in held.outside.get(name, ())})
            for box, inside in zip(layout.boxes, own, strict=True)
        ],
        opens=[-1] * len(layout.boxes),
        source=[number[edge.source] for edge in layout.edges],
        target=[number[edge.target] for edge in layout.edges],
        num_bytes=[-1 if edge.num_bytes is None else edge.num_bytes for edge in layout.edges],
        points=[[length for point in edge.points for length in point] for edge in layout.edges],
    )


def _units_in(box: LayoutBox, units: Units) -> Iterator[int]:
    for name in box.nodes:
        unit = units.home.get(name, -1)
        if unit >= 0 and units.first[unit] == name:
            yield unit


def _inside(graph: Graph, units: Units, inside: Sequence[int]) -> _Part:
    """The graph of some units: stubs stand for what they read from the rest, and for who reads them there."""
    held = {node.name for unit in inside for node in units.shown.boxes[unit]}
    nodes = [node for node in graph.nodes if node.name in held]
    read = {name for node in nodes for name in node.inputs} - held
    inputs = [
        GraphNode(name=node.name, op="input", role="input", dtype=node.dtype, shape=node.shape)
        for node in graph.nodes
        if node.name in read
    ]
    readers: dict[int, dict[str, None]] = {}
    for node in graph.nodes:
        passed = () if node.name in held else [name for name in node.inputs if name in held]
        if passed:
            readers.setdefault(units.home[node.name], {}).update(dict.fromkeys(passed))
    outside = {node.name: [units.home[node.name]] for node in inputs}
    outputs = []
    for unit_numbers in _ports(list(readers)):
        first, more = units.first[unit_numbers[0]], len(unit_numbers) - 1
        stub = f"{_OUT}{unit_numbers[0]}"
        results = dict.fromkeys(result for unit in unit_numbers for result in readers[unit])
        title = f"{first} and {more} more" if more else first
        outputs.append(GraphNode(name=stub, op="output", target=title, inputs=list(results)))
        outside[stub] = unit_numbers
    return _Part(replace(graph, nodes=[*inputs, *nodes, *outputs]), outside)


def _ports(readers: Sequence[int]) -> list[list[int]]:
    """Each reader by itself; of many the last ones together."""
    alone = len(readers) if len(readers) <= PORTS.most else PORTS.most - 1
    rest = list(readers[alone:])
    return [*([unit] for unit in readers[:alone]), *([rest] if rest else [])]


def _total(nodes: Sequence[GraphNode]) -> int:
    sizes = [node.num_bytes for node in nodes if node.num_bytes is not None]
    return sum(sizes) if len(sizes) == len(nodes) else -1
