"""What a picture shows as one box: operations with their parameters; whole modules or lines where there are too many."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal, NamedTuple

from pyrometer.compiler.graphs.grouping import group_nodes, topological_order
from pyrometer.compiler.graphs.read import unpackings
from pyrometer.compiler.graphs.record import Graph, GraphNode

Collapse = Literal["auto", "none", "module", "line"]
MAX_BOXES = 60
"""More are not legible at once."""
_MANY_INPUTS = 12
_FEW = 8
"""Fewer show next to nothing of a large graph."""
_TRIALS = 16
_FOLDED = frozenset({"parameter", "buffer", "saved", "symbol"})


class Collapsed(NamedTuple):
    """Boxes as lists of nodes, in an order in which every edge leads forward."""

    boxes: list[list[GraphNode]]
    edges: dict[tuple[int, int], list[GraphNode]]
    """The nodes whose results pass from box to box."""
    by: str
    """none, module, line or range."""
    saved: frozenset[str]
    """Nodes that are returned only for the backward graph; no edge leads from them to the output."""


def collapse_graph(graph: Graph, collapse: Collapse = "auto", max_boxes: int = MAX_BOXES) -> Collapsed:
    """Put the nodes of a graph together.

    Parameters, buffers and what the forward graph saved stand in the box that reads them; of several boxes in the first, unless
    operations are kept apart. The parts of a result stand in the box that computes it.

    Args:
        graph: the graph.
        collapse: `none` keeps operations apart, `module` and `line` put together what comes from one; `auto` keeps them
            apart as long as there are few, then opens as many modules as `max_boxes` allows.
        max_boxes: how many boxes `auto` may leave.
    """
    nodes = _Nodes(graph)
    if collapse == "none":
        return nodes.grouped([None] * len(nodes.nodes), "none")
    if collapse == "line":
        return nodes.grouped([_line_key(node) for node in nodes.nodes], "line")
    if collapse == "module":
        return nodes.grouped([_module_key(node, None) for node in nodes.nodes], "module")
    flat = nodes.grouped([None] * len(nodes.nodes), "none")
    if len(flat.boxes) <= max_boxes:
        return flat
    return _automatic(nodes, max_boxes)


def _automatic(nodes: _Nodes, max_boxes: int) -> Collapsed:
    """As many modules open as fit; lines where there are no modules; stretches of either where even those are too many."""
    opened, best, deeper = _opened_by_level(nodes, max_boxes)
    closed = [module for module in nodes.modules if module not in opened]
    for module in closed[:_TRIALS]:  # what still fits, the largest first
        if module.rpartition(".")[0] in {"", *opened}:
            found = nodes.by_modules(opened | {module})
            if len(found.boxes) <= max_boxes:
                opened, best = opened | {module}, found
    if _FEW <= len(best.boxes) <= max_boxes:
        return best
    lines = nodes.grouped([_line_key(node) for node in nodes.nodes], "line")
    if len(best.boxes) <= len(lines.boxes) <= max_boxes:
        return lines
    finer = [found for found in (deeper, lines, best) if found is not None and len(found.boxes) >= _FEW]
    smallest = min(finer, key=lambda found: len(found.boxes), default=best)
    return smallest if len(smallest.boxes) <= max_boxes else _ranges(smallest, max_boxes)


def _opened_by_level(nodes: _Nodes, max_boxes: int) -> tuple[set[str], Collapsed, Collapsed | None]:
    """Modules opened a level at a time; the last grouping that fits, and the first that does not."""
    opened = set[str]()
    best = nodes.by_modules(opened)
    while True:
        deeper = opened | {module for module in nodes.modules if module.rpartition(".")[0] in {"", *opened}}
        if deeper == opened:
            return opened, best, None
        found = nodes.by_modules(deeper)
        if len(found.boxes) > max_boxes:
            return opened, best, found
        opened, best = deeper, found


class _Nodes:
    """The nodes of one graph, and who reads whom."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = graph.nodes
        number = {node.name: place for place, node in enumerate(graph.nodes)}
        self.reads = [
            [number[name] for name in node.inputs if number.get(name, place) < place]
            for place, node in enumerate(graph.nodes)
        ]
        self.readers: list[list[int]] = [[] for _ in graph.nodes]
        for place, node in enumerate(graph.nodes):
            for source in self.reads[place]:
                if node.op != "output" or not graph.nodes[source].saved:
                    self.readers[source].append(place)
        source_of = unpackings(graph.nodes)
        self.home = list(range(len(graph.nodes)))
        for place, node in enumerate(graph.nodes):
            if node.name in source_of:
                self.home[place] = self.home[number[source_of[node.name]]]
        self.output = next((place for place, node in enumerate(graph.nodes) if node.op == "output"), None)
        self.modules = self._modules()

    def _modules(self) -> list[str]:
        """Every module that nodes come from, and those around it; the one with the most nodes first."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            module = node.module
            while module:
                counts[module] = counts.get(module, 0) + 1
                module = module.rpartition(".")[0]
        return sorted(counts, key=lambda module: (-counts[module], module))

    def by_modules(self, opened: set[str]) -> Collapsed:
        return self.grouped([_module_key(node, opened) for node in self.nodes], "module")

    def grouped(self, keys: Sequence[Hashable | None], by: str) -> Collapsed:
        """Boxes by keys of nodes."""
        places = range(len(self.nodes))
        folded = [self._may_fold(place) for place in places]
        apart = [place for place in places if not folded[place] and self.home[place] == place]
        number = {place: index for index, place in enumerate(apart)}
        inputs = self._input_keys(by)
        groups = group_nodes(
            [inputs.get(place, keys[place]) for place in apart],
            [self._computed_reads(place, number) for place in apart],
        )
        box_of = dict(zip(apart, groups, strict=True))
        for place in places:
            if self.home[place] != place:
                box_of[place] = box_of[self.home[place]]
        rank = self._ranks(box_of)
        for place in places:
            if folded[place]:
                box_of[place] = self._fold(place, box_of, rank, first=by != "none")
        return self._collapsed(box_of, by)

    def _computed_reads(self, place: int, number: dict[int, int]) -> list[int]:
        homes = (self.home[source] for source in self.reads[place])
        return [number[home] for home in homes if home in number]

    def _fold(self, place: int, box_of: dict[int, int], rank: list[int], *, first: bool) -> int:
        """The box that reads an input, if it is one, or the first of them; inputs that nothing reads stand with the output."""
        boxes = {box_of[reader] for reader in self.readers[place] if reader in box_of}
        if len(boxes) == 1 or (boxes and (first or self._is_symbol(place))):
            return min(boxes, key=rank.__getitem__)
        if not boxes and self.output is not None:
            return box_of[self.output]
        return max(box_of.values(), default=-1) + 1

    def _may_fold(self, place: int) -> bool:
        node = self.nodes[place]
        computes = any(self.nodes[reader].op != "output" for reader in self.readers[place])
        return node.op == "attribute" or (node.op == "input" and (node.role in _FOLDED or not computes))

    def _is_symbol(self, place: int) -> bool:
        return self.nodes[place].op == "input" and bool(self.nodes[place].symbol)

    def _input_keys(self, by: str) -> dict[int, Hashable]:
        """Inputs stay apart unless there are many; nothing leads to them, so that one box for all is no cycle."""
        places = [place for place, node in enumerate(self.nodes) if node.op == "input"]
        if by == "none" or len(places) <= _MANY_INPUTS:
            return dict.fromkeys(places)
        return {place: ("inputs", self.nodes[place].role) for place in places}

    def _edges(self, box_of: dict[int, int]) -> dict[tuple[int, int], list[int]]:
        """What passes between the boxes that there are so far."""
        edges: dict[tuple[int, int], list[int]] = {}
        for source, readers in enumerate(self.readers):
            for reader in readers if source in box_of and not self._is_symbol(source) else ():
                pair = (box_of[source], box_of.get(reader, box_of[source]))
                if pair[0] != pair[1]:
                    edges.setdefault(pair, []).append(source)
        return edges

    def _ranks(self, box_of: dict[int, int]) -> list[int]:
        """The place of each box in an order in which every edge leads forward."""
        num_boxes = max(box_of.values(), default=-1) + 1
        ranks = [0] * num_boxes
        for place, box in enumerate(topological_order(num_boxes, self._edges(box_of))):
            ranks[box] = place
        return ranks

    def _collapsed(self, box_of: dict[int, int], by: str) -> Collapsed:
        edges = self._edges(box_of)
        rank = self._ranks(box_of)
        boxes: list[list[GraphNode]] = [[] for _ in rank]
        for place, node in enumerate(self.nodes):
            boxes[rank[box_of[place]]].append(node)
        return Collapsed(
            boxes,
            {
                (rank[a], rank[b]): [self.nodes[place] for place in dict.fromkeys(sources)]
                for (a, b), sources in edges.items()
            },
            by,
            frozenset(node.name for node in self.nodes if node.saved),
        )


def _module_key(node: GraphNode, opened: set[str] | None) -> Hashable | None:
    """The outermost module around a node that is not opened; the line for what stands in an opened module itself."""
    if node.op in {"input", "output"}:
        return None
    parts = node.module.split(".") if node.module else []
    if opened is None:
        return ("module", node.module) if parts else _line_key(node)
    for depth in range(1, len(parts) + 1):
        module = ".".join(parts[:depth])
        if module not in opened:
            return ("module", module)
    return ("own", node.module, _line_key(node))


def _line_key(node: GraphNode) -> Hashable | None:
    """The user's line; without one the operation stands alone, except that nodes of one target go together."""
    if node.op in {"input", "output"}:
        return None
    return ("line", node.file, node.line) if node.file else ("target", node.target)


def _ranges(found: Collapsed, max_boxes: int) -> Collapsed:
    """Boxes that follow each other put together: stretches of an order in which every edge leads forward.

    Inputs and outputs stay apart where they are few; nothing leads to the former and nothing comes from the latter, so
    that they may stand before and behind all others.
    """
    kinds = [{node.op for node in box} for box in found.boxes]
    first = [box for box, held in enumerate(kinds) if held == {"input"}]
    last = [box for box, held in enumerate(kinds) if held == {"output"}]
    if len(first) + len(last) > max_boxes // 4:
        first, last = [], []
    ends = {*first, *last}
    between = [box for box in range(len(found.boxes)) if box not in ends]
    length = -(-len(between) // max(max_boxes - len(ends), 1))
    stretches = [between[start : start + length] for start in range(0, len(between), max(length, 1))]
    together = [*([box] for box in first), *stretches, *([box] for box in last)]
    home = {box: place for place, held in enumerate(together) for box in held}
    edges: dict[tuple[int, int], list[GraphNode]] = {}
    for (source, target), nodes in found.edges.items():
        pair = (home[source], home[target])
        if pair[0] != pair[1]:
            edges.setdefault(pair, []).extend(nodes)
    boxes = [[node for box in held for node in found.boxes[box]] for held in together]
    return found._replace(boxes=boxes, edges=edges, by="range")
