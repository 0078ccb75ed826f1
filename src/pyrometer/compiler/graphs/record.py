"""An FX graph as a record: nodes, edges, shapes, where each comes from; and a drawing of one."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class GraphNode(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One node."""

    name: str
    op: Annotated[str, doc("input, call, output or attribute")]
    target: Annotated[str, doc("what is called: torch.nn.functional.linear, aten.addmm.default")] = ""
    inputs: Annotated[list[str], doc("names of the nodes that it reads")] = []
    dtype: Annotated[str, doc("as torch names it: float32; empty if it is no tensor")] = ""
    shape: Annotated[list[str], doc("sizes; symbols for open ones")] = []
    stride: list[str] = []
    device: str = ""
    num_bytes: Annotated[Bytes | None, doc("of its result; null with open sizes, or if it is no tensor")] = (
        None
    )
    module: Annotated[str, doc("qualified name of the module that it comes from; empty when unknown")] = ""
    file: str = ""
    line: int = 0
    source: Annotated[str, doc("text of the user's line")] = ""
    group: Annotated[str, doc("fused group that computes it, where known")] = ""
    function: Annotated[str, doc("name of the function that the user's line is in")] = ""
    symbol: Annotated[str, doc("the expression, if it is a symbolic number; empty otherwise")] = ""
    role: Annotated[
        str, doc("of an input: parameter, buffer, input, tangent, saved (by the forward graph) or symbol")
    ] = ""
    parameter: Annotated[str, doc("qualified name of the parameter or buffer that an input is")] = ""
    saved: Annotated[bool, doc("returned only for the backward graph")] = False


class Graph(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The graph of one compilation at one stage."""

    compile_id: str
    stage: Annotated[
        str,
        doc(
            "dynamo, pre_grad, joint, forward, backward, inference or post_grad; backward graphs end in _backward; "
            "before_pre_grad and before_post_grad are the same before those passes"
        ),
    ]
    nodes: list[GraphNode]
    num_ops: Annotated[
        int, doc("nodes that compute: calls, less those that unpack a result; bodies of subgraphs count once")
    ]
    text: Annotated[str, doc("as torch prints it; empty when withheld")] = ""
    name: Annotated[str, doc("of a subgraph: the attribute that holds it; empty for the graph itself")] = ""
    subgraphs: Annotated[list[Graph], doc("bodies of cond, invoke_subgraph, …")] = []


class LayoutBox(Record, frozen=True, kw_only=True):
    """A box of a drawing: one node, or several that were put together. Lengths are CSS pixels."""

    name: Annotated[str, doc("unique in the drawing")]
    label: Annotated[str, doc("the first line in the box")]
    detail: Annotated[str, doc("the second line; may be empty")] = ""
    kind: Annotated[str, doc("class of its operations: matmul, pointwise, view, input, … or mixed")]
    nodes: Annotated[list[str], doc("names of the nodes in it, in the order of the graph")]
    tooltip: Annotated[str, doc("everything about it, several lines")] = ""
    layer: Annotated[int, doc("row, counted from the top; every edge leads to a larger one")]
    x: Annotated[float, doc("of the left edge")]
    y: Annotated[float, doc("of the upper edge")]
    width: float
    height: float
    dtype: Annotated[str, doc("of what it hands on; empty if mixed or none")] = ""
    group: Annotated[str, doc("fused group; empty if none or several")] = ""
    module: str = ""
    places: Annotated[list[str], doc("the user's lines, file:line")] = []
    num_bytes: Annotated[Bytes | None, doc("of all results that leave it; null where one is unknown")] = None
    owner: Annotated[str, doc("module whose parameters it reads; empty if none")] = ""
    num_results: Annotated[
        int, doc("results of the graph that it returns without a line, where a line would be long")
    ] = 0


class LayoutEdge(Record, frozen=True, kw_only=True):
    """A line from box to box, downwards."""

    source: str
    target: str
    points: Annotated[list[tuple[float, float]], doc("x and y; y grows from point to point")]
    nodes: Annotated[list[str], doc("nodes whose results pass along it")] = []
    num_bytes: Annotated[Bytes | None, doc("of those results; null where one is unknown")] = None


class GraphLayout(Record, frozen=True, kw_only=True):
    """Where everything of a drawing stands, in CSS pixels."""

    title: str
    boxes: list[LayoutBox]
    edges: list[LayoutEdge]
    width: float
    height: float
    collapsed_by: Annotated[
        str, doc("none: a box per operation; module, line or range: what was put together")
    ] = "none"
    num_nodes: Annotated[int, doc("of the graph")] = 0
