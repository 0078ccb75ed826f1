"""Statements that make a running sum, in the forms in which they are written; and what is put into containers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal, NamedTuple

from pyrometer.rules.rule import Module

JOINING = frozenset(["add", "maximum", "minimum", "max", "min", "logaddexp"])
"""Functions of torch, and methods, of two tensors; the result has the graphs of both."""


class Added(NamedTuple):
    """A statement, what it adds to, and what it adds."""

    node: ast.stmt | ast.Call
    target: ast.expr
    values: tuple[ast.expr, ...]
    how: Literal["sum", "append", "store"]


def added(module: Module) -> Iterator[Added]:
    """Every sum, every call that adds to a container, and every entry that is stored under a name."""
    for addition in module.nodes(ast.AugAssign):
        if isinstance(addition.op, ast.Add | ast.Sub):
            yield Added(addition, addition.target, (addition.value,), "sum")
    for node in module.nodes(ast.Assign, ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if len(targets) != 1 or node.value is None:
            continue
        if isinstance(node.value, ast.BinOp | ast.Call) and (
            values := _summed(module, node.value, targets[0])
        ):
            yield Added(node, targets[0], values, "sum")
        elif isinstance(targets[0], ast.Subscript) and not isinstance(
            targets[0].slice, ast.Slice | ast.Constant
        ):
            yield Added(node, targets[0], (node.value,), "store")
    yield from _appends(module)


def summands(value: ast.expr) -> list[ast.expr]:
    """`a`, `b` and `c` of `a + b - c`; of anything else itself."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add | ast.Sub):
        return [*summands(value.left), *summands(value.right)]
    return [value]


def _summed(module: Module, value: ast.BinOp | ast.Call, target: ast.expr) -> tuple[ast.expr, ...]:
    """What is added where a value is made of its target and of something else; nothing where it is not."""
    if isinstance(value, ast.BinOp):
        parts = summands(value)
    elif isinstance(value.func, ast.Attribute):
        function = value.func
        if function.attr not in JOINING or value.keywords:
            return ()
        is_function = module.name_of(function) == f"torch.{function.attr}"
        parts = value.args if is_function else [function.value, *value.args]
    else:
        return ()
    if len(parts) < 2:
        return ()
    text = ast.unparse(target)
    own = [part for part in parts if _is_scaled(part, text)]
    return tuple(part for part in parts if part is not own[0]) if len(own) == 1 else ()


def _is_scaled(part: ast.expr, text: str) -> bool:
    """Whether a summand is the sum so far, or a multiple of it as in a running mean."""
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult | ast.Div):
        sides = [part.left, part.right] if isinstance(part.op, ast.Mult) else [part.left]
        return any(ast.unparse(side) == text for side in sides)
    return isinstance(part, ast.Name | ast.Attribute | ast.Subscript) and ast.unparse(part) == text


def _appends(module: Module) -> Iterator[Added]:
    for call in module.method_calls("append", "appendleft", "add", "extend", "insert"):
        function = call.func
        if not isinstance(function, ast.Attribute) or call.keywords:
            continue
        is_insert, many = function.attr == "insert", function.attr == "extend"
        if len(call.args) != (2 if is_insert else 1):
            continue
        value = call.args[-1]
        if not many or isinstance(value, ast.List | ast.Tuple):
            yield Added(call, _container(function.value), (value,), "append")


def _container(expression: ast.expr) -> ast.expr:
    """`kept` of `kept.setdefault(key, [])`; of anything else itself."""
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Attribute):
        return expression.func.value if expression.func.attr == "setdefault" else expression
    return expression
