"""Boxes in rows, with bends where long lines pass: the graph that is ordered and placed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyrometer.compiler.graphs.ordering import Rows

_MAX_BENDS = 20_000
"""Beyond them, the longest lines go straight."""


class Grid:
    """Vertices row by row. The first ones are boxes, the rest are bends; edges join neighbouring rows only.

    All lines that leave a box share one chain of bends, as far down as the longest of them.
    """

    def __init__(self, layers: Sequence[int], edges: Iterable[tuple[int, int]]) -> None:
        self.num_boxes = len(layers)
        self.layers = list(layers)
        self.above: list[list[int]] = [[] for _ in layers]
        self.below: list[list[int]] = [[] for _ in layers]
        self.rows: list[list[int]] = [[] for _ in range(max(layers, default=-1) + 1)]
        self.routes: dict[tuple[int, int], list[int]] = {}
        """The bends of each line."""
        self._chains: dict[int, list[int]] = {}
        for box, layer in enumerate(layers):
            self.rows[layer].append(box)
        # Short lines first, so that it is the longest that go without bends.
        for source, target in sorted(edges, key=lambda edge: (layers[edge[1]] - layers[edge[0]], edge)):
            self._route(source, target)

    def is_bend(self, vertex: int) -> bool:
        """Whether a vertex is only a point on a long line."""
        return vertex >= self.num_boxes

    def with_rows(self, rows: list[list[int]]) -> Rows:
        """The same with the vertices of each row in another order."""
        return Rows(rows, self.above, self.below)

    def _route(self, source: int, target: int) -> None:
        chain = self._chains.setdefault(source, [])
        needed = self.layers[target] - self.layers[source] - 1
        num_bends = len(self.layers) - self.num_boxes
        if num_bends + needed - len(chain) > _MAX_BENDS:
            self.routes[source, target] = []
            return
        while len(chain) < needed:
            self._lengthen(source, chain)
        self._join(chain[needed - 1] if needed else source, target)
        self.routes[source, target] = chain[:needed]

    def _lengthen(self, source: int, chain: list[int]) -> None:
        bend, layer = len(self.layers), self.layers[source] + len(chain) + 1
        self.above.append([])
        self.below.append([])
        self.layers.append(layer)
        self.rows[layer].append(bend)
        self._join(chain[-1] if chain else source, bend)
        chain.append(bend)

    def _join(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)
