"""Reading formulas in source text: functions and methods alike, names followed to where they are assigned."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from pyrometer.rules.rule import Module

HOMES = ("torch.nn.functional.", "torch.special.", "torch.linalg.", "torch.")


class Applied(NamedTuple):
    """A function of torch applied to a value, written as a function or as a method."""

    name: str
    value: ast.expr
    rest: Sequence[ast.expr]
    call: ast.Call


def applied(module: Module, node: ast.expr) -> Applied | None:
    """`torch.exp(x)`, `F.softmax(x, -1)` or `x.exp()`, `x.softmax(-1)`.

    A method of an unknown object counts: nobody calls `x.log_softmax(-1)` on anything but a tensor.
    """
    if not isinstance(node, ast.Call) or any(isinstance(arg, ast.Starred) for arg in node.args):
        return None
    text = module.name_of(node.func)
    if text is not None:
        home = next((home for home in HOMES if text.startswith(home)), None)
        if home is None or "." in text.removeprefix(home) or not node.args:
            return None
        return Applied(text.removeprefix(home), node.args[0], node.args[1:], node)
    if isinstance(node.func, ast.Attribute):
        return Applied(node.func.attr, node.func.value, node.args, node)
    return None


def followed(module: Module, node: ast.expr) -> ast.expr:
    """The expression behind a name that is assigned once, and that nothing changes in place; else the node itself."""
    if not isinstance(node, ast.Name):
        return node
    given = module.assignments(node.id, node)
    if len(given) != 1 or changed_in_place(module, node):
        return node
    return given[0]


def changed_in_place(module: Module, name: ast.Name) -> bool:
    """Whether some use of a name writes to the tensor: `x += 1`, `x[i] = 0`, `x.clamp_(1)`."""
    for use in module.uses(name.id, name):
        above = module.parent(use)
        if isinstance(above, ast.Subscript) and not isinstance(above.ctx, ast.Load):
            return True
        if isinstance(above, ast.Attribute) and above.attr.endswith("_") and not above.attr.endswith("__"):
            return True
    return any(
        isinstance(node.target, ast.Name) and node.target.id == name.id
        for node in module.nodes(ast.AugAssign)
    )


def same(one: ast.expr, other: ast.expr) -> bool:
    """Whether two expressions are written alike."""
    return ast.dump(one) == ast.dump(other)


def functional(module: Module) -> str | None:
    """How the file calls `torch.nn.functional`; `None` where it cannot."""
    for node in module.nodes(ast.Import, ast.ImportFrom):
        for alias in node.names:
            source = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
            if source == "torch.nn.functional" and (alias.asname or isinstance(node, ast.ImportFrom)):
                return alias.asname or alias.name
    for node in module.nodes(ast.Import):
        for alias in node.names:
            if alias.name == "torch":
                return f"{alias.asname or 'torch'}.nn.functional"
    return None


def renamed(module: Module, call: ast.Call, name: str) -> str:
    """The text of a call with the last part of its function's name replaced."""
    text, function = module.source(call), module.source(call.func)
    assert isinstance(call.func, ast.Attribute)
    return f"{function[: -len(call.func.attr)]}{name}{text[len(function) :]}"
