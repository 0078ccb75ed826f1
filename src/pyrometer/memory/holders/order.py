"""The nodes of autograd graphs, the latest made first, and no chain of them deeper than is safe.

In that order all that lead to a node come before it, so that its depth, the longest chain above it, is known when it is its turn.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Any

from pyrometer.memory.private import autograd_nodes


class NodeQueue:
    """Nodes that wait to be looked at.

    Once a chain is cut, what comes after may hang below the cut, so that only as many more nodes are handed out as one chain may
    have.
    """

    def __init__(self) -> None:
        self.is_cut = False
        self._limit = autograd_nodes.max_depth()
        self._left = self._limit or 0
        self._depth: dict[int, int] = {}
        self._heap: list[tuple[int, int, Any]] = []
        self._ticket = itertools.count()

    def push(self, node: Any, depth: int = 0) -> None:
        """Let a node wait, or note that a deeper chain leads to it too; each is handed out once."""
        known = self._depth.get(id(node))
        self._depth[id(node)] = max(depth, known or 0)
        if known is None:
            heapq.heappush(self._heap, (-autograd_nodes.sequence_number(node), next(self._ticket), node))

    def pop(self) -> tuple[Any, int] | None:
        """The next node with its depth; `None` when none waits."""
        while self._heap:
            node = heapq.heappop(self._heap)[2]
            depth = self._depth[id(node)]
            if self._limit is None or (depth < self._limit and self._left > 0):
                self._left -= self.is_cut
                return node, depth
            self.is_cut = True
        return None

    def clear(self) -> None:
        """Let go of all nodes."""
        self._heap.clear()
        self._depth.clear()
