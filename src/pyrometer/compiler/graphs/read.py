"""Every FX graph of a log, as records."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from pyrometer.compiler.compile_id import CompileId
from pyrometer.compiler.graphs.modules import Tensor, read_input, with_modules, with_roots
from pyrometer.compiler.graphs.record import Graph, GraphNode
from pyrometer.compiler.graphs.text import OUTPUT, Body, read_bodies
from pyrometer.compiler.log import CompileLog, LogEntry

_STAGES = {
    "dynamo_output_graph": "dynamo",
    "compiled_autograd_graph": "compiled_autograd",
    "before_pre_grad_graph": "before_pre_grad",
    "after_pre_grad_graph": "pre_grad",
    "aot_joint_graph": "joint",
    "aot_forward_graph": "forward",
    "aot_backward_graph": "backward",
    "aot_inference_graph": "inference",
    "before_post_grad_graph": "before_post_grad",
    "inductor_post_grad_graph": "post_grad",
}
"""Stages by the entries that hold them, in the order in which a graph passes through them."""

_ORDER = {stage: number for number, stage in enumerate(_STAGES.values())}
_AFTER_AOT = frozenset({"before_post_grad", "post_grad"})
_FORWARD = frozenset({"forward", *_AFTER_AOT})
_INDEX = re.compile(r"PlainAOTInput\(idx=(\d+)\)$")


def read_graphs(log: CompileLog) -> list[Graph]:
    """Every graph, stage by stage: of each compilation and stage the last attempt.

    A text that cannot be read gives a graph with what could be read of it.
    """
    latest: dict[tuple[CompileId | None, str], tuple[LogEntry, list[Body]]] = {}
    for entry in log.of(*_STAGES):
        bodies = read_bodies(entry.payload)
        key = (entry.compile_id, _stage(entry.kind, bodies))
        if key not in latest or entry.attempt >= latest[key][0].attempt:
            latest[key] = (entry, bodies)
    graphs = list[Graph]()
    for compile_id in dict.fromkeys(compile_id for compile_id, _ in latest):
        stages = {stage: found for (own, stage), found in latest.items() if own == compile_id}
        graphs += _graphs_of(compile_id, stages)
    return graphs


def _stage(kind: str, bodies: Sequence[Body]) -> str:
    stage = _STAGES[kind]
    backward = stage in _AFTER_AOT and bodies and any(_is_tangent(node) for node in bodies[0].nodes)
    return f"{stage}_backward" if backward else stage


def _is_tangent(node: GraphNode) -> bool:
    return node.op == "input" and node.name.startswith("tangents_")


def _graphs_of(
    compile_id: CompileId | None, stages: Mapping[str, tuple[LogEntry, list[Body]]]
) -> list[Graph]:
    ordered = sorted(stages, key=lambda stage: _ORDER[stage.removesuffix("_backward") or stage])
    mains = {stage: bodies[0] for stage, (_, bodies) in stages.items() if bodies}
    by_dynamo = _dynamo_inputs(mains["dynamo"].nodes) if "dynamo" in mains else []
    lifted = _lifted(mains.values(), by_dynamo)
    saved = _saved(mains["forward"].remarks) if "forward" in mains else frozenset()
    graphs = []
    for stage in ordered:
        entry, bodies = stages[stage]
        tensors = _tensors(stage, bodies, lifted)
        graph = graph_of(bodies, tensors, stage=stage, saved=saved if stage in _FORWARD else frozenset())
        own = compile_id.text if compile_id else ""
        subgraphs = [replace(inner, compile_id=own) for inner in graph.subgraphs]
        graphs.append(replace(graph, compile_id=own, subgraphs=subgraphs, text=entry.payload))
    return graphs


def graph_of(
    bodies: Sequence[Body],
    tensors: Mapping[str, Tensor] | None = None,
    *,
    stage: str,
    saved: Collection[str] = (),
) -> Graph:
    """One graph from what was read of its text.

    Args:
        bodies: the graph and its subgraphs.
        tensors: what its inputs are, by name.
        stage: as in `Graph`.
        saved: names of the nodes that it returns for the backward graph alone.
    """
    main, *rest = bodies or [Body("", [], {})]
    subgraphs = [_graph(body.name, with_modules(body.nodes, {}), stage) for body in rest]
    nodes = [replace(node, saved=node.name in saved) for node in with_modules(main.nodes, tensors or {})]
    graph = _graph("", nodes, stage)
    return replace(
        graph, subgraphs=subgraphs, num_ops=graph.num_ops + sum(inner.num_ops for inner in subgraphs)
    )


def _graph(name: str, nodes: list[GraphNode], stage: str) -> Graph:
    unpacked = unpackings(nodes)
    num_ops = sum(node.op == "call" and node.name not in unpacked for node in nodes)
    return Graph(compile_id="", stage=stage, name=name, nodes=nodes, num_ops=num_ops)


def unpackings(nodes: Iterable[GraphNode]) -> dict[str, str]:
    """Nodes that take one of several results apart, and the node that computes those."""
    several, found = set[str](), dict[str, str]()
    for node in nodes:
        if node.target == "operator.getitem" and len(node.inputs) == 1 and node.inputs[0] in several:
            found[node.name] = node.inputs[0]
        elif node.op == "call" and not node.dtype and not node.symbol:
            several.add(node.name)
    return found


def _saved(remarks: Mapping[str, str]) -> frozenset[str]:
    """What the forward graph returns for the backward graph alone."""
    prefix = f"{OUTPUT}:"
    return frozenset(
        name.removeprefix(prefix)
        for name, remark in remarks.items()
        if name.startswith(prefix) and remark.startswith("SavedForBackwards")
    )


def _dynamo_inputs(nodes: Iterable[GraphNode]) -> list[Tensor]:
    return with_roots([_dynamo_input(node) for node in nodes if node.op == "input"])


def _dynamo_input(node: GraphNode) -> Tensor:
    return Tensor("symbol") if node.symbol else read_input(node.target)


def _lifted(mains: Iterable[Body], by_dynamo: Sequence[Tensor]) -> dict[str, Tensor]:
    """AOTAutograd's inputs by name, as far as it says which of Dynamo's they are; its later stages keep the names."""
    tensors = dict[str, Tensor]()
    for body in mains:
        for name, remark in body.remarks.items():
            match = _INDEX.match(remark)
            if match is not None and int(match[1]) < len(by_dynamo):
                tensors[name] = by_dynamo[int(match[1])]
    return tensors


def _tensors(stage: str, bodies: Sequence[Body], lifted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    inputs = [node for node in bodies[0].nodes if node.op == "input"] if bodies else []
    if stage in {"dynamo", "before_pre_grad", "pre_grad"}:
        return dict(zip((node.name for node in inputs), _dynamo_inputs(inputs), strict=True))
    backward = stage.endswith("backward")
    return {
        node.name: lifted[node.name]
        if node.name in lifted
        else Tensor(
            "tangent" if _is_tangent(node) else "symbol" if node.symbol else "saved" if backward else "input"
        )
        for node in inputs
    }
