"""Which names a piece of code changes, and which an expression hangs on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator


def names_in(*nodes: ast.AST) -> set[str]:
    """Every name that is read or written in these nodes."""
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


def root_name(node: ast.AST) -> str | None:
    """The name that attributes, indices and calls of methods begin with: `x` of `x[0].view(-1).T`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def assigned_in(*nodes: ast.AST) -> set[str]:
    """The names that are bound anew somewhere in these nodes."""
    return {
        part.id
        for node in nodes
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)
    }


def changed_in_place(block: ast.AST) -> set[str]:
    """The names whose objects a block may write into: by `+=`, an index, `out=` or a method that ends in an underscore."""
    changed: set[str | None] = set()
    for node in ast.walk(block):
        if isinstance(node, ast.AugAssign):
            changed.add(root_name(node.target))
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            changed.add(root_name(node))
        elif isinstance(node, ast.Call):
            changed |= {root_name(keyword.value) for keyword in node.keywords if keyword.arg == "out"}
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if name.endswith("_") and not name.endswith("__"):
                changed.add(root_name(node.func))
    return {name for name in changed if name is not None}


def sources_of(names: Iterable[str], block: ast.AST) -> set[str]:
    """Names, and all that they are made of within a block, through assignments and loops."""
    reached, pairs = set(names), list(_bindings(block))
    while True:
        more = {name for targets, made_of in pairs if targets & reached for name in made_of} - reached
        if not more:
            return reached
        reached |= more


def _bindings(block: ast.AST) -> Iterator[tuple[set[str], set[str]]]:
    for node in ast.walk(block):
        if isinstance(node, ast.Assign):
            yield assigned_in(*node.targets), names_in(node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            yield assigned_in(node.target), names_in(node.value)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield assigned_in(node.target), names_in(node.iter)
