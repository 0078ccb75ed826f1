"""What the methods of a file's classes assign to the attributes of `self`."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.source.index import FunctionNode

if TYPE_CHECKING:
    from pyrometer.source.module import Module

AttributeTable = dict[str, list[tuple[ast.AST, FunctionNode | None]]]
"""By attribute, the expressions that it is given, and the methods that do; None for the class's body.

An expression may stand for more: an AnnAssign for its annotation, an AugAssign for what is not known, a call of
register_buffer for a tensor.
"""


def attribute_tables(module: Module) -> dict[ast.ClassDef, AttributeTable]:
    """The assignments of all classes, found in one look at the file."""
    tables: dict[ast.ClassDef, AttributeTable] = defaultdict(lambda: defaultdict(list))
    for definition in module.nodes(ast.ClassDef):
        for name, node in in_body(definition):
            tables[definition][name].append((node, None))
    for target in module.nodes(ast.Attribute):
        if not isinstance(target.ctx, ast.Store) or not isinstance(target.value, ast.Name):
            continue
        method, owner = method_around(module, target, target.value.id)
        if owner is not None:
            tables[owner][target.attr].append((given_to(module, target), method))
    for call in module.method_calls("register_buffer", "register_parameter"):
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        registered = module.literal(call.args[0]) if call.args else None
        if isinstance(receiver, ast.Name) and isinstance(registered, str):
            method, owner = method_around(module, call, receiver.id)
            if owner is not None:
                tables[owner][registered].append((call, method))
    return {definition: dict(table) for definition, table in tables.items()}


def in_body(definition: ast.ClassDef) -> Iterator[tuple[str, ast.AST]]:
    """What a class's body assigns."""
    for statement in definition.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, statement
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    yield target.id, statement.value


def method_around(
    module: Module, node: ast.AST, self_name: str
) -> tuple[FunctionNode | None, ast.ClassDef | None]:
    """The method around a node whose first argument has this name, and its class."""
    method = module.function_of(node)
    owner = None if method is None else module.parent(method)
    if method is None or not isinstance(owner, ast.ClassDef):
        return None, None
    arguments = [*method.args.posonlyargs, *method.args.args]
    if not arguments or arguments[0].arg != self_name or is_static(method):
        return None, None
    return method, owner


def given_to(module: Module, target: ast.Attribute) -> ast.AST:
    """What an assignment gives to an attribute; the target itself, as a part of a tuple, in a loop or the like."""
    parent = module.parent(target)
    if isinstance(parent, ast.Assign):
        return parent.value
    return parent if isinstance(parent, ast.AnnAssign | ast.AugAssign) else target


def is_static(function: FunctionNode) -> bool:
    """Whether a method has no `self`."""
    decorators = {node.id for node in function.decorator_list if isinstance(node, ast.Name)}
    return not decorators.isdisjoint({"staticmethod", "classmethod"})
