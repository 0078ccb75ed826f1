"""Models of a file: where they are made, and whether they are compiled there."""

from __future__ import annotations

import ast

from pyrometer.rules.rule import Module
from pyrometer.source.value import Kind

COMPILERS = frozenset({"torch.compile", "torch.jit.script", "torch.jit.trace"})


def made_here(module: Module, name: str, around: ast.AST, inside: ast.AST | None = None) -> bool:
    """Whether a name is given a new module in the same function, so that what ran before is all in sight.

    Args:
        module: the file.
        name: of the model.
        around: a node of the function.
        inside: only what is made within this node counts.
    """
    return any(
        _makes_module(module, value)
        for value in module.assignments(name, around)
        if module.function_of(value) is module.function_of(around)
        and (inside is None or inside in set(module.ancestors(value)))
    )


def is_compiled(module: Module, name: str, around: ast.AST) -> bool:
    """Whether a name is given the outcome of a compiler."""
    return any(
        isinstance(value, ast.Call) and module.name_of(value.func) in COMPILERS
        for value in module.assignments(name, around)
    )


def creation(expression: ast.expr) -> ast.expr:
    """What is made, without the methods that return it: `Net` of `Net().cuda().eval()`."""
    while (
        isinstance(expression, ast.Call)
        and isinstance(expression.func, ast.Attribute)
        and isinstance(expression.func.value, ast.Call)
    ):
        expression = expression.func.value
    return expression


def _makes_module(module: Module, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    node = creation(value)
    if isinstance(node, ast.Call) and module.name_of(node.func) in COMPILERS:
        return True
    return isinstance(node, ast.Call) and module.value_of(node).kind is Kind.MODULE
