"""Real graphs, and random ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from pyrometer.compiler.collecting.collector import collect
from pyrometer.compiler.graphs.read import read_graphs
from pyrometer.compiler.graphs.record import Graph, GraphNode


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        h = functional.relu(self.norm(self.first(x)))
        return self.head(h.mean((2, 3)))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        q, k, v = (part.unsqueeze(1) for part in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.out(functional.scaled_dot_product_attention(q, k, v).squeeze(1))
        return x + self.mlp(x)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(8) for _ in range(2)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def compiled_graphs(function: Callable, *args, backward=False, dynamic=None) -> dict[str, Graph]:
    """The graphs of one compiled call by stage."""
    torch._dynamo.reset()
    with collect() as collector:
        result = torch.compile(function, backend="aot_eager", dynamic=dynamic)(*args)
        if backward:
            result.sum().backward()
    torch._dynamo.reset()
    return {graph.stage: graph for graph in read_graphs(collector.log())}


@pytest.fixture(scope="session")
def convolutions():
    return compiled_graphs(Convolutions(), torch.randn(2, 3, 6, 6), backward=True)


@pytest.fixture(scope="session")
def transformer():
    return compiled_graphs(Transformer(), torch.randn(2, 4, 8), backward=True)


@pytest.fixture(scope="session")
def compiled():
    return compiled_graphs


TARGETS = ("aten.mm.default", "aten.add.Tensor", "torch.relu", "operator.getitem", "higher_order.cond")
MODULES = ("", "encoder", "encoder.0", "encoder.1", "encoder.0.fc", "head")


@st.composite
def graphs(draw, max_nodes=40) -> Graph:
    """Any acyclic graph, with inputs of every role and results that are taken apart."""
    nodes: list[GraphNode] = []
    for number in range(draw(st.integers(0, max_nodes))):
        op = draw(st.sampled_from(("input", "call", "call", "call", "attribute")))
        names = [node.name for node in nodes]
        inputs = (
            draw(st.lists(st.sampled_from(names), max_size=3, unique=True)) if names and op == "call" else []
        )
        nodes.append(
            GraphNode(
                name=f"n{number}",
                op=op,
                target=draw(st.sampled_from(TARGETS)),
                inputs=inputs,
                dtype=draw(st.sampled_from(("", "float32"))),
                symbol=draw(st.sampled_from(("", "", "s0"))),
                role=draw(st.sampled_from(("parameter", "input", "saved", "symbol")))
                if op == "input"
                else "",
                module=draw(st.sampled_from(MODULES)),
                file=draw(st.sampled_from(("", "model.py"))),
                line=draw(st.integers(1, 4)),
                saved=draw(st.booleans()),
            )
        )
    if draw(st.booleans()):
        names = [node.name for node in nodes]
        results = draw(st.lists(st.sampled_from(names), max_size=4, unique=True)) if names else []
        nodes.append(GraphNode(name="output", op="output", inputs=results))
    return Graph(compile_id="0/0", stage="dynamo", nodes=nodes, num_ops=0)


@pytest.fixture(scope="session")
def any_graph():
    return graphs()
