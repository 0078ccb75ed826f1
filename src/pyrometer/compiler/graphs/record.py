"""An FX graph as a record: nodes, edges, shapes, where each comes from."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc


class GraphNode(Record, frozen=True, kw_only=True):
    """One node."""

    name: str
    op: Annotated[str, doc("input, call, output or attribute")]
    target: Annotated[str, doc("what is called: torch.nn.functional.linear, aten.addmm.default")] = ""
    inputs: Annotated[list[str], doc("names of the nodes that it reads")] = []
    dtype: str = ""
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


class Graph(Record, frozen=True, kw_only=True):
    """The graph of one compilation at one stage."""

    compile_id: str
    stage: Annotated[
        str,
        doc(
            "dynamo, pre_grad, joint, forward, backward, inference or post_grad; backward graphs end in _backward"
        ),
    ]
    nodes: list[GraphNode]
    num_ops: Annotated[int, doc("nodes that compute")]
    text: Annotated[str, doc("as torch prints it; empty when withheld")] = ""
