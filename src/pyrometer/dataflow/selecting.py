"""What an operator that selects asks of what it selects from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyrometer.dataflow.demand import Demand
from pyrometer.dataflow.graph import Call, FlowGraph, Ref, Value

Asked = tuple[int, Demand | None]
"""A value, and the part that is asked for; `None` is everything."""

Selected = tuple[set[int], float, Callable[[int], int]]
"""The dimensions that a selection is along, the share that it takes, and where a dimension of its result lies in the source."""


def selection(graph: FlowGraph, call: Call, demand: Demand | None, result: int) -> Asked | None:
    """What a selecting call asks of what it selects from; `None` where it is none."""
    select = _SELECTING.get(call.name)
    if select is None or not call.reads:
        return None
    source = graph.values[call.reads[0]]
    found = select(graph, call, graph.values[result])
    if found is None:
        return None
    dims, share, moved = found
    part = (call.name, call.arguments[1:], result if call.name in PIECES else None)
    own = Demand(frozenset(dims), share, call.number, call.name in REGULAR, (part,))
    inner = None if demand is None else demand.along(moved(dim) for dim in demand.dims)
    if inner is None:
        return source.number, own if share < 1 else None
    origin = own if share < inner.share else inner
    return source.number, Demand(
        own.dims | inner.dims if share < 1 else inner.dims,
        share * inner.share,
        origin.origin,
        own.regular and inner.regular,
        own.part + inner.part,
    )


PIECES = frozenset(["aten::split", "aten::split_with_sizes", "aten::unbind"])
REGULAR = frozenset(
    [
        "aten::select",
        "aten::slice",
        "aten::split",
        "aten::split_with_sizes",
        "aten::unbind",
        "aten::diagonal",
        "aten::narrow",
    ]
)


def _select(graph: FlowGraph, call: Call, _result: Value) -> Selected:
    shape = graph.values[call.reads[0]].shape
    dim = call.argument(1, 0) % len(shape)
    return {dim}, 1 / max(shape[dim], 1), lambda each: each + (each >= dim)


def _slice(graph: FlowGraph, call: Call, result: Value) -> Selected:
    shape = graph.values[call.reads[0]].shape
    place = 2 if call.name in {"aten::split", "aten::split_with_sizes"} else 1
    dim = call.argument(place, 0) % len(shape)
    return {dim}, result.shape[dim] / max(shape[dim], 1), lambda each: each


def _diagonal(graph: FlowGraph, call: Call, result: Value) -> Selected:
    shape = graph.values[call.reads[0]].shape
    dims = {call.argument(2, 0) % len(shape), call.argument(3, 1) % len(shape)}
    left = [dim for dim in range(len(shape)) if dim not in dims]
    first = min(dims)
    return (
        dims,
        result.numel / max(graph.values[call.reads[0]].numel, 1),
        lambda each: left[each] if each < len(left) else first,
    )


def _index(graph: FlowGraph, call: Call, result: Value) -> Selected | None:
    source = graph.values[call.reads[0]]
    indices = call.argument(1)
    dims: list[int] = []
    at = 0
    picked = 0
    for index in indices if isinstance(indices, tuple) else ():
        value = _value(graph, index)
        if value is None:
            at += 1
            continue
        wide = len(value.shape) if value.dtype in {"bool", "uint8"} else 1
        dims += range(at, at + wide)
        at += wide
        picked = max(picked, 1 if value.dtype in {"bool", "uint8"} else len(value.shape))
    if not dims or dims != list(range(dims[0], dims[-1] + 1)):
        return None
    lost, first = len(dims), dims[0]
    share = min(1.0, result.numel / max(source.numel, 1))
    return set(dims), share, lambda each: each if each < first else max(each - picked + lost, first)


def _index_select(graph: FlowGraph, call: Call, result: Value) -> Selected | None:
    shape = graph.values[call.reads[0]].shape
    if not shape:
        return None
    dim = call.argument(1) % len(shape)
    return {dim}, min(1.0, result.shape[dim] / max(shape[dim], 1)), lambda each: each


def _gather(graph: FlowGraph, call: Call, result: Value) -> Selected | None:
    shape = graph.values[call.reads[0]].shape
    if not shape:
        return None
    dim = call.argument(1) % len(shape)
    if any(size != result.shape[i] for i, size in enumerate(shape) if i != dim):
        return None
    return {dim}, min(1.0, result.shape[dim] / max(shape[dim], 1)), lambda each: each


def _loss(graph: FlowGraph, call: Call, _result: Value) -> Selected | None:
    rank = len(graph.values[call.reads[0]].shape)
    if call.kept is None or rank < 2:
        return None
    return {dim for dim in range(rank) if dim != 1}, call.kept, lambda each: each


_SELECTING: dict[str, Callable[[FlowGraph, Call, Value], Selected | None]] = {
    "aten::select": _select,
    "aten::unbind": _select,
    "aten::slice": _slice,
    "aten::narrow": _slice,
    "aten::split": _slice,
    "aten::split_with_sizes": _slice,
    "aten::diagonal": _diagonal,
    "aten::index": _index,
    "aten::index_select": _index_select,
    "aten::gather": _gather,
    "aten::nll_loss_forward": _loss,
    "aten::nll_loss2d_forward": _loss,
}


def _value(graph: FlowGraph, argument: Any) -> Value | None:
    return graph.values[argument.value] if isinstance(argument, Ref) else None
