"""Expressions whose result is as large as the data says, as source text shows them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyrometer.rules.host.patterns.reads import Read, read_of, receiver
from pyrometer.rules.rule import Module

SIZED_METHODS = ("nonzero", "unique", "unique_consecutive", "masked_select", "argwhere", "bincount")
SIZED_FUNCTIONS = tuple(f"torch.{name}" for name in SIZED_METHODS)
BOOLEAN_CALLS = frozenset(
    [
        "isnan",
        "isinf",
        "isfinite",
        "isneginf",
        "isposinf",
        "isclose",
        "logical_and",
        "logical_or",
        "logical_not",
        "logical_xor",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "greater",
        "greater_equal",
        "less",
        "less_equal",
        "not_equal",
        "bool",
        "isin",
    ]
)
"""Functions and methods that give boolean tensors."""


def mask_indexing(module: Module) -> Iterator[Read]:
    """`x[mask]` read, where the mask is boolean for certain."""
    for subscript in module.nodes(ast.Subscript):
        reads = isinstance(subscript.ctx, ast.Load) or isinstance(module.parent(subscript), ast.AugAssign)
        if reads and any(is_mask(module, index) for index in _indices(subscript)):
            yield read_of(module, subscript, subscript.value)


def sized_by_data(module: Module) -> Iterator[Read]:
    """Operators whose result is as large as the data says, so that the host must be told: `nonzero`, `unique` and others."""
    for call in module.method_calls(*SIZED_METHODS):
        if module.name_of(call.func) is None:
            yield read_of(module, call, receiver(call))
    for call in module.calls(*SIZED_FUNCTIONS):
        if call.args:
            yield read_of(module, call, call.args[0])
    for call in module.calls("torch.where"):
        if len(call.args) == 1 and not call.keywords:
            yield read_of(module, call, call.args[0])
    yield from _repeats(module)


def is_mask(module: Module, index: ast.expr) -> bool:
    """Whether an index certainly is a boolean tensor."""
    return _looks_boolean(module, index, 3) and module.value_of(index).is_tensor


def _looks_boolean(module: Module, index: ast.expr, deep: int) -> bool:
    """Whether an expression, if it is a tensor, is one of booleans."""
    if isinstance(index, ast.Compare):
        return not any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in index.ops)
    if isinstance(index, ast.Call):
        return _gives_booleans(module, index)
    parts: list[ast.expr] = []
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
        parts = [index.operand]
    elif isinstance(index, ast.BinOp) and isinstance(index.op, ast.BitAnd | ast.BitOr | ast.BitXor):
        parts = [index.left, index.right]
    elif isinstance(index, ast.Name):
        parts = list(module.assignments(index.id, index))
    elif isinstance(index, ast.Subscript):  # a row of a mask
        parts = [index.value]
    return deep > 0 and bool(parts) and all(_looks_boolean(module, part, deep - 1) for part in parts)


def _gives_booleans(module: Module, call: ast.Call) -> bool:
    last = (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else (module.name_of(call.func) or "").rpartition(".")[2]
    )
    if last in {"to", "type"}:
        return any(module.name_of(arg) == "torch.bool" for arg in call.args)
    return last in BOOLEAN_CALLS


def _repeats(module: Module) -> Iterator[Read]:
    """`repeat_interleave` with a tensor of repeats and no `output_size`."""
    functions = [(call, call.args[1:2]) for call in module.calls("torch.repeat_interleave")]
    methods = [
        (call, call.args[:1])
        for call in module.method_calls("repeat_interleave")
        if module.name_of(call.func) is None
    ]
    for call, nodes in functions + methods:
        repeats = nodes[0] if nodes else module.keyword(call, "repeats")
        if repeats is not None and module.keyword(call, "output_size") is None:
            yield read_of(module, call, repeats)


def _indices(subscript: ast.Subscript) -> list[ast.expr]:
    return list(subscript.slice.elts) if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]
