"""How large the autograd graphs of all live tensors are together: a sum that is never detached grows by nodes alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch

from pyrometer.memory.leaks.births import live_tensors
from pyrometer.memory.leaks.cohorts import rises
from pyrometer.memory.private.autograd_nodes import as_is, grad_fn_of, next_nodes

MOST_NODES = 200_000
"""More are not counted; who has as many need not be told precisely."""

NODE_BYTES = 700
"""Of the process, per node of a graph that is kept, with what belongs to it: a rough mean of measured programs, of which the
nodes took 570 (a chain of additions) to 820 (losses of small models after backward)."""

MOST_CANDIDATES = 64
"""Of so many tensors with a graph, the latest, it is asked whose is the largest."""


class Census(NamedTuple):
    """Nodes that were alive after a step."""

    step: int
    nodes: int


def count_nodes(tensors: Iterable[torch.Tensor]) -> int:
    """Distinct nodes of the graphs behind some tensors.

    >>> x = torch.ones(2, requires_grad=True)
    >>> count_nodes([(x * 2).exp()])
    3
    """
    with as_is():
        todo = [node for node in map(grad_fn_of, tensors) if node is not None]
        seen = set(todo)
        while todo and len(seen) < MOST_NODES:
            for node in next_nodes(todo.pop()):
                if node not in seen:
                    seen.add(node)
                    todo.append(node)
    return len(seen)


def largest_graph() -> torch.Tensor | None:
    """The live tensor with most nodes behind it; `None` without any graph."""
    with as_is():
        candidates = [tensor for tensor in live_tensors() if grad_fn_of(tensor) is not None]
    return max(candidates[-MOST_CANDIDATES:], key=lambda candidate: count_nodes([candidate]), default=None)


def node_growth(counts: Sequence[Census]) -> float:
    """Nodes per step by which graphs grow steadily; 0 when they do not.

    >>> node_growth([Census(step, 5 * step + 40) for step in range(8, 60, 4)])
    5.0
    >>> node_growth([Census(step, 40) for step in range(8, 60, 4)])
    0.0
    """
    if not rises([count.nodes for count in counts]):
        return 0.0
    first, last = counts[0], counts[-1]
    return (last.nodes - first.nodes) / (last.step - first.step)
