"""Casts to half precision in source text."""

from __future__ import annotations

import ast

from pyrometer.rules.rule import Module

LOW = {"torch.float16": "float16", "torch.half": "float16", "torch.bfloat16": "bfloat16"}
EXACT_UP_TO = {"float16": 2048, "bfloat16": 256}
"""Up to here every whole number has a value of its own."""

_METHODS = {"half": "float16", "bfloat16": "bfloat16"}


def low_dtype(module: Module, expression: ast.expr | None) -> str | None:
    """The half dtype that an expression names, also through a name that is assigned once."""
    if expression is None:
        return None
    text = module.name_of(expression)
    if text is not None:
        return LOW.get(text)
    if isinstance(expression, ast.Name):
        given = module.assignments(expression.id, expression)
        return LOW.get(module.name_of(given[0]) or "") if len(given) == 1 else None
    return None


def cast_to_low(module: Module, node: ast.expr) -> tuple[ast.expr, str] | None:
    """What a call casts, and to which half dtype: `x.half()`, `x.bfloat16()`, `x.to(torch.float16)`, `x.type(...)`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    if module.name_of(node.func) is not None:
        return None
    method = node.func.attr
    if method in _METHODS and not node.args:
        return node.func.value, _METHODS[method]
    if method not in {"to", "type", "astype"}:
        return None
    low_dtypes = [low_dtype(module, arg) for arg in [*node.args, module.keyword(node, "dtype")]]
    found = next((dtype for dtype in low_dtypes if dtype is not None), None)
    return (node.func.value, found) if found is not None else None


def low_value(module: Module, node: ast.expr) -> str | None:
    """The half dtype that an expression has for certain: it is cast right there, or where its name is assigned once."""
    cast = cast_to_low(module, node)
    if cast is not None:
        return cast[1]
    if isinstance(node, ast.Name):
        given = module.assignments(node.id, node)
        cast = cast_to_low(module, given[0]) if len(given) == 1 else None
        return cast[1] if cast is not None else None
    return None
