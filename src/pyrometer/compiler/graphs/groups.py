"""Which generated kernel computes which node."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from pyrometer.compiler.costs.record import KernelOrigin
from pyrometer.compiler.graphs.record import Graph


def with_groups(graphs: Iterable[Graph], origins: Iterable[KernelOrigin]) -> list[Graph]:
    """The same graphs, where those after Inductor's passes tell the kernel of each node.

    A node that several kernels compute bears the first. Forward and backward graphs of one compilation share their origins: a
    name is looked for in both.
    """
    kernels: dict[tuple[str, str], str] = {}
    for origin in origins:
        for name in origin.ops:
            kernels.setdefault((origin.compile_id, name), origin.kernel)
    return [
        _with_kernels(graph, kernels) if graph.stage.startswith("post_grad") else graph for graph in graphs
    ]


def _with_kernels(graph: Graph, kernels: dict[tuple[str, str], str]) -> Graph:
    nodes = [
        replace(node, group=kernels.get((graph.compile_id, node.name), node.group))
        if node.op == "call"
        else node
        for node in graph.nodes
    ]
    return replace(graph, nodes=nodes)
