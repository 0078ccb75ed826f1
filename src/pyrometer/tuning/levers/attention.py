"""Attention that is written out as two products and a softmax, found in the graph of one module and rewritten.

A module's own code is traced with `torch.fx`, the modules in it as they are. What cannot be traced, or is not understood wholly
(weights that are read twice, scales that are learned, other orders), stays as it is. Whether the rewrite computes the same shows in
the numbers, which are compared.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import operator
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import fx, nn
from torch.nn import functional

from pyrometer.tuning.levers.lever import held

_PRODUCTS = {torch.matmul, torch.bmm, operator.matmul, "matmul", "bmm", "__matmul__"}
_SCALARS = {math.sqrt, operator.pow, operator.truediv, operator.mul, float}
_LAST_TWO = {(-2, -1), (-1, -2), (2, 3), (3, 2)}
_LEAST_MASKING = -1e4


class _OwnCode(fx.Tracer):
    """Traces the forward of one module, and none of those inside."""

    proxy_buffer_attributes = True  # masks are sliced by lengths that are not known while tracing

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """All of them."""
        del m, module_qualified_name
        return True

    def iter(self, obj: fx.Proxy) -> Iterator[fx.Proxy]:
        """Also of the parts of `chunk` in a comprehension, whose number stands in the call."""
        node = obj.node
        if _is(node, {"chunk", torch.chunk}) and len(node.args) > 1 and isinstance(node.args[1], int):
            parts: Any = obj
            return iter([parts[number] for number in range(node.args[1])])
        own: Iterator[fx.Proxy] = super().iter(obj)
        return own


class _Found(NamedTuple):
    """The parts of a written-out attention."""

    query: fx.Node
    key: fx.Node
    value: fx.Node
    scaled_by: tuple[str, Any] | None
    mask: fx.Node | None
    keeps: bool
    """Whether the mask says what takes no part, and not what is added."""
    product: fx.Node


def written_out() -> contextlib.AbstractContextManager[None]:
    """Let `nn.TransformerEncoderLayer` and `nn.MultiheadAttention` compute by single operators in place of their one fused call.

    A compiler sees nothing in that call, its arithmetic is not counted, and it takes no quantised weights.
    """
    return held(torch.backends.mha.set_fastpath_enabled, False, torch.backends.mha.get_fastpath_enabled())


def fused(module: nn.Module, constants: Mapping[str, Any]) -> nn.Module | None:
    """The module with its attention as one operator; `None` where none is found."""
    try:
        graph = _OwnCode().trace(module, dict(constants))
    except Exception:  # noqa: BLE001 - whatever the user's code does with stand-ins for tensors
        return None
    found = [each for node in graph.nodes if (each := _attention(module, node)) is not None]
    if not found:
        return None
    for each in found:
        _rewrite(graph, each)
    rewritten = fx.GraphModule(module, graph, type(module).__name__)
    rewritten.graph.eliminate_dead_code()
    rewritten.recompile()
    return rewritten.train(module.training)


def _attention(module: nn.Module, product: fx.Node) -> _Found | None:
    """From the second product upwards."""
    if not _is(product, _PRODUCTS) or len(product.args) != 2:
        return None
    weights, value = product.args
    weights = _without_dropout(module, weights)
    scores = _softmax_input(module, weights)
    if scores is None or not isinstance(value, fx.Node):
        return None
    scores, mask, keeps = _unmasked(scores)
    scores, scaled_by = _unscaled(scores)
    if not isinstance(scores, fx.Node) or not _is(scores, _PRODUCTS) or len(scores.users) != 1:
        return None
    query, key = scores.args[0], _untransposed(scores.args[1])
    if not isinstance(query, fx.Node) or key is None:
        return None
    return _Found(query, key, value, scaled_by, mask, keeps, product)


def _is(node: Any, targets: set[Any]) -> bool:
    return (
        isinstance(node, fx.Node) and node.op in {"call_function", "call_method"} and node.target in targets
    )


def _without_dropout(module: nn.Module, node: Any) -> Any:
    """In eval mode dropout does nothing."""
    if not isinstance(node, fx.Node) or len(node.users) != 1:
        return node
    if node.op == "call_module" and isinstance(_called(module, node), (nn.Dropout, nn.Identity)):
        return node.args[0]
    idle = node.kwargs.get("training") is False or node.kwargs.get("p") == 0.0
    return node.args[0] if _is(node, {functional.dropout}) and idle else node


def _called(module: nn.Module, node: fx.Node) -> nn.Module:
    return module.get_submodule(str(node.target))


def _softmax_input(module: nn.Module, node: Any) -> Any:
    """What a softmax over the last dimension reads, where its result is read once."""
    if not isinstance(node, fx.Node) or len(node.users) != 1 or not node.args:
        return None
    if node.op == "call_module":
        called = _called(module, node)
        return node.args[0] if isinstance(called, nn.Softmax) and called.dim == -1 else None
    if not _is(node, {torch.softmax, functional.softmax, "softmax"}):
        return None
    dim = node.kwargs.get("dim", node.args[1] if len(node.args) > 1 else None)
    plain = node.kwargs.get("dtype") is None
    return node.args[0] if dim == -1 and plain else None


def _unmasked(node: Any) -> tuple[Any, fx.Node | None, bool]:
    if not isinstance(node, fx.Node) or len(node.users) != 1:
        return node, None, False
    if _is(node, {"masked_fill", torch.masked_fill}) and len(node.args) == 3:
        scores, mask, value = node.args
        hides = isinstance(value, (int, float)) and value <= _LEAST_MASKING
        return (scores, mask, True) if hides and isinstance(mask, fx.Node) else (node, None, False)
    if _is(node, {operator.add, torch.add, "add"}) and len(node.args) == 2:
        scores, mask = node.args
        if isinstance(scores, fx.Node) and isinstance(mask, fx.Node):
            return (scores, mask, False)
    return node, None, False


def _unscaled(node: Any) -> tuple[Any, tuple[str, Any] | None]:
    for name, targets in (
        ("div", {operator.truediv, torch.div, "div"}),
        ("mul", {operator.mul, torch.mul, "mul"}),
    ):
        if _is(node, targets) and len(node.args) == 2 and len(node.users) == 1:
            scores, scale = node.args
            number = isinstance(scale, (int, float)) or _is(scale, _SCALARS)
            return (scores, (name, scale)) if number else (node, None)
    return node, None


def _untransposed(node: Any) -> fx.Node | None:
    """The keys, of keys that are transposed in their last two dimensions."""
    if not isinstance(node, fx.Node):
        return None
    swapped = _is(node, {"transpose", torch.transpose, "swapaxes"}) and node.args[1:] in _LAST_TWO
    permuted = _is(node, {"permute"}) and tuple(node.args[1:]) in {(0, 1, 3, 2), ((0, 1, 3, 2),)}
    mirrored = _is(node, {getattr}) and node.args[1] == "mT"
    if swapped or permuted or mirrored:
        return node.args[0] if isinstance(node.args[0], fx.Node) else None
    return None


def _rewrite(graph: fx.Graph, found: _Found) -> None:
    with graph.inserting_before(found.product):
        query = found.query
        if found.scaled_by is not None:
            name, scale = found.scaled_by
            query = graph.call_function(operator.truediv if name == "div" else operator.mul, (query, scale))
        mask = found.mask
        if mask is not None and found.keeps:
            boolean = graph.call_method("to", (mask, torch.bool))
            mask = graph.call_function(torch.logical_not, (boolean,))
        new = graph.call_function(
            functional.scaled_dot_product_attention,
            (query, found.key, found.value),
            {"attn_mask": mask, "scale": 1.0},
        )
    found.product.replace_all_uses_with(new)
    graph.erase_node(found.product)


def constants_of(
    module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Arguments of a call that hold no tensor, by name; `None` where the call does not fit the signature."""
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    bound.apply_defaults()
    plain = (bool, int, float, str, type(None))
    return {name: value for name, value in bound.arguments.items() if isinstance(value, plain)}
