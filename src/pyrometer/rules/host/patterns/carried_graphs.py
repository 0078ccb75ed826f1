"""Backward passes that keep their graph because a value carries it from one round to the next, as the source shows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from pyrometer.rules.rule import Module

PASSES = frozenset({"torch.autograd.grad", "torch.autograd.backward"})
LETS_GO = frozenset({"detach", "detach_", "data", "item", "no_grad", "zero_"})


class CarriedGraph(NamedTuple):
    """A pass, and what carries the graph past it."""

    call: ast.Call
    names: tuple[str, ...]
    """As they are written."""
    carried_at: int
    """The line that makes the first of them of itself."""

    def holds(self, line: int | None) -> bool:
        """Whether the pass is written there."""
        return line is not None and self.call.lineno <= line <= (self.call.end_lineno or self.call.lineno)


def keeps_graph(module: Module, node: ast.AST) -> bool:
    """Whether it is a backward pass after which the graph stays."""
    if not isinstance(node, ast.Call):
        return False
    is_pass = module.name_of(node.func) in PASSES or (
        isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
    )
    kept = module.keyword(node, "retain_graph")
    return is_pass and kept is not None and module.literal(kept) is not False


def carried_graphs(module: Module) -> Iterator[CarriedGraph]:
    """The passes of a file that a round of a loop, or each call of a method, makes over what earlier ones left."""
    for call in module.nodes(ast.Call):
        if keeps_graph(module, call) and (carried := _carried(module, call)):
            yield CarriedGraph(call, tuple(carried), next(iter(carried.values())))


def _carried(module: Module, call: ast.Call) -> dict[str, int]:
    """What a round makes of what it was in the round before, with the line, lets go in none, and differentiates."""
    around = next(
        node
        for node in module.ancestors(call)
        if isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.AsyncFunctionDef | ast.Module)
    )
    is_loop = isinstance(around, ast.For | ast.While)
    fresh = _named(around.target) if isinstance(around, ast.For) else set()
    let_go = {name for part in around.body if _detaches(module, part) for name in _named(part)}
    needed = _needed(module, around.body, call)
    made: dict[str, int] = {}
    for node in _assignments(around.body):
        read = _named(node.value)
        for name in _named(*node.targets):
            outlives = is_loop or "." in name  # a local of a function does not reach its next call
            if (
                name in read & needed
                and outlives
                and name not in fresh | let_go
                and not _detaches(module, node)
            ):
                made.setdefault(name, node.lineno)
            fresh.add(name)
    return made


def _needed(module: Module, body: list[ast.stmt], call: ast.Call) -> set[str]:
    """Names that what is differentiated is made of within a round."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    is_method = isinstance(call.func, ast.Attribute) and module.name_of(call.func) not in PASSES
    needed = _named(call.func) if is_method else _named(*given)
    for node in reversed(_assignments(body)):
        if _named(*node.targets) & needed:
            needed |= _named(node.value)
    return needed


def _assignments(body: list[ast.stmt]) -> list[ast.Assign]:
    return [node for part in body for node in ast.walk(part) if isinstance(node, ast.Assign)]


def _detaches(module: Module, statement: ast.stmt) -> bool:
    """Whether it lets a graph go in every round, by itself or by a function of the file; what an `if` does, it does not always."""
    if isinstance(statement, ast.If):
        return False
    called = {
        part.func.id
        for part in ast.walk(statement)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
    }
    functions = [function for function in module.nodes(ast.FunctionDef) if function.name in called]
    return any(
        isinstance(part, ast.Attribute) and part.attr in LETS_GO
        for scope in (statement, *functions)
        for part in ast.walk(scope)
    )


def _named(*expressions: ast.AST) -> set[str]:
    """Names and attributes, as they are written."""
    return {
        ast.unparse(part)
        for expression in expressions
        for part in ast.walk(expression)
        if isinstance(part, ast.Name | ast.Attribute)
    }
