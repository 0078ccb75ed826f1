"""What methods and attributes of tensors return, and which methods only tensors have."""

from __future__ import annotations

import ast

from pyrometer.source.called import Called
from pyrometer.source.torch_calls import operation
from pyrometer.source.torch_names import (
    HOST_ATTRIBUTES,
    HOST_METHODS,
    INDIFFERENTIABLE,
    LIKE_OPERATIONS,
    METHODS,
    REDUCING,
    SEQUENCES,
    TENSOR_ONLY_METHODS,
)
from pyrometer.source.value import (
    ARRAY,
    GRAPH_TENSOR,
    HOST,
    LEAF,
    MODULE,
    TENSOR,
    UNKNOWN,
    Device,
    Kind,
    Value,
)

MOVES = frozenset(["to", "cpu", "cuda", "xpu", "mtia"])
MODULE_ONLY_METHODS = frozenset(
    [
        "parameters",
        "named_parameters",
        "named_modules",
        "named_children",
        "named_buffers",
        "register_forward_hook",
    ]
)
DIMENSIONED = frozenset(["dim", "keepdim"])
"""Keywords that only torch has; numpy says axis and keepdims."""


def tensor_method(called: Called, method: str, base: Value) -> Value:
    """The result of a method of a tensor."""
    if method in HOST_METHODS:
        return HOST
    if method in MOVES:
        result = called.frame.tensor(base)
        return Value(Kind.TENSOR, base.graph or result.graph, moved_to(called, method, base.device))
    plain = method.removesuffix("_")
    if plain in REDUCING or plain in SEQUENCES:
        return operation(called, plain, [base, *called.inputs])
    if plain in METHODS:
        return changed(called, method, base)
    if method in {"type", "unique"}:
        return called.frame.tensor(base) if bool(called.inputs) == (method == "type") else UNKNOWN
    return ARRAY if method == "numpy" else UNKNOWN


def changed(called: Called, method: str, base: Value) -> Value:
    """The result of a method that returns a tensor."""
    plain = method.removesuffix("_")
    if method == "requires_grad_":
        return LEAF
    if plain in INDIFFERENTIABLE or plain in LIKE_OPERATIONS:
        return Value(Kind.TENSOR, device=base.device) if base.device else TENSOR
    if plain == "type_as":
        return Value(Kind.TENSOR, called.frame.tensor(base).graph, called.first.device)
    others = [value for value in called.inputs if value.is_tensor]
    if base.graph and plain != method:
        return base  # In place: what it carried, it carries on.
    return called.frame.tensor(base, *others)


def moved_to(called: Called, method: str, before: Device | None) -> Device | None:
    """The device of what `.to(...)`, `.cpu()` or `.cuda()` returns."""
    if method != "to":
        return "cpu" if method == "cpu" else "accelerator"
    expression = called.module.keyword(called.node, "device")
    if expression is None and called.node.args:
        expression = called.node.args[0]
    if expression is None or is_dtype(called, expression):
        return before
    return called.device_named(expression)


def is_dtype(called: Called, expression: ast.expr) -> bool:
    """Whether an expression is such as `torch.float16`."""
    if isinstance(expression, ast.Attribute) and expression.attr == "dtype":
        return True
    dotted = called.module.name_of(expression)
    return dotted is not None and dotted.startswith("torch.")


def tensor_attribute(base: Value, attribute: str) -> Value:
    """An attribute of a tensor."""
    if attribute in HOST_ATTRIBUTES:
        return HOST
    if attribute in {"T", "mT", "H", "mH", "real", "imag"}:
        return Value(Kind.TENSOR, base.graph, base.device, base.of)
    if attribute in {"data", "grad"}:
        return Value(Kind.TENSOR, device=base.device)
    return UNKNOWN


def learn_from_method(called: Called, method: str, base: Value) -> None:
    """What the call of a method says about what it is called on: that only tensors, or only modules, have it."""
    if base.kind not in {Kind.UNKNOWN, Kind.TENSOR}:
        return
    if method == "backward":
        called.frame.claim(base, GRAPH_TENSOR)
    elif only_tensors_have(called, method):
        called.frame.claim(base)
    elif method in MODULE_ONLY_METHODS:
        called.frame.claim(base, MODULE)


def only_tensors_have(called: Called, method: str) -> bool:
    """Whether a method, called in this way, is one of tensors and of nothing else."""
    if method in TENSOR_ONLY_METHODS:
        return True
    if method in METHODS or method in REDUCING or method in SEQUENCES:
        return not DIMENSIONED.isdisjoint(called.keywords)
    return False


def method_of_unknown(called: Called, method: str) -> Value:
    """The result of a method that only tensors have, or that returns a number whatever has it."""
    if method in {"item", "tolist", "numel"}:
        return HOST
    if method not in HOST_METHODS and only_tensors_have(called, method):
        return tensor_method(called, method, TENSOR)
    return UNKNOWN
