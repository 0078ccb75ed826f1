"""Loops whose rounds work on tensors of different sizes, so that no single call can do them all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.rules.host.patterns.sizes import SIZED_METHODS, is_mask
from pyrometer.source.value import Kind

if TYPE_CHECKING:
    from pyrometer.rules.host.patterns.loops import Rounds
    from pyrometer.source.module import Module

TO_NUMBERS = frozenset({"item", "tolist"})


def is_ragged(module: Module, loop: Rounds) -> bool:
    """Whether the data say in each round how large its tensors are: masks, `nonzero`, `x[i, :length]`, sizes read as numbers."""
    counters, elements = _targets(module, loop)
    elements |= _made_of_elements(loop, counters, elements)
    return any(
        _is_sized_by_data(module, node)
        or _takes_of_list(module, node, counters)
        or _takes_of_record(module, node, counters)
        or _calls_ragged(module, node)
        or (isinstance(node, ast.Slice) and any(_varies(end, counters, elements) for end in _ends(node)))
        for statement in loop.body
        for node in ast.walk(statement)
    )


def _takes_of_list(module: Module, node: ast.AST, counters: set[str]) -> bool:
    """Whether a round takes its element of a list of tensors, such as `x.split(sizes)` gives: each may have another size."""
    if not (
        isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id in counters
    ):
        return False
    return isinstance(node.ctx, ast.Load) and module.value_of(node.value).kind is Kind.TENSORS


def _takes_of_record(module: Module, node: ast.AST, counters: set[str]) -> bool:
    """Whether a round takes a field of its element of a list of records: `targets[i]["boxes"]`, `results[i].masks`."""
    element = node.value if isinstance(node, ast.Attribute | ast.Subscript) else None
    if not (
        isinstance(element, ast.Subscript)
        and isinstance(element.slice, ast.Name)
        and element.slice.id in counters
    ):
        return False
    by_key = isinstance(node, ast.Subscript) and isinstance(module.literal(node.slice), str)
    is_field = isinstance(node, ast.Attribute) and not isinstance(module.parent(node), ast.Call)
    return (by_key or is_field) and not module.value_of(element.value).is_tensor


def _calls_ragged(module: Module, node: ast.AST) -> bool:
    """Whether a round calls a function of this file in which the data say how large tensors are."""
    function = module.classes.called_function(node) if isinstance(node, ast.Call) else None
    return function is not None and any(_is_sized_by_data(module, part) for part in ast.walk(function))


def _targets(module: Module, loop: Rounds) -> tuple[set[str], set[str]]:
    """The names that count the rounds, and those of the elements."""
    names = [node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)]
    called = module.name_of(loop.iter.func) if isinstance(loop.iter, ast.Call) else None
    if called == "range":
        return set(names), set()
    return (set(names[:1]), set(names[1:])) if called == "enumerate" else (set(), set(names))


def _made_of_elements(loop: Rounds, counters: set[str], elements: set[str]) -> set[str]:
    """Names that a round gives what it takes of an element: `length = lengths[i]`."""
    return {
        target.id
        for statement in loop.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Assign) and _varies(node.value, counters, elements)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _ends(node: ast.Slice) -> Iterator[ast.expr]:
    yield from (end for end in (node.lower, node.upper) if end is not None)


def _varies(node: ast.expr, counters: set[str], elements: set[str]) -> bool:
    """Whether a number is another in each round; arithmetic on the counter alone moves a window of one size."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in elements:
            return True
        if isinstance(part, ast.Subscript):
            names = {inner.id for inner in ast.walk(part.slice) if isinstance(inner, ast.Name)}
            if names & counters:
                return True
    return False


def _is_sized_by_data(module: Module, node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return isinstance(node.ctx, ast.Load) and any(is_mask(module, index) for index in indices)
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in SIZED_METHODS or (name == "where" and len(node.args) == 1):
        return True
    if name == "repeat_interleave" and module.keyword(node, "output_size") is None:
        return True
    # A number that is kept is used for something; one that is added up or collected is not.
    statement = module.statement_of(node)
    return name in TO_NUMBERS and isinstance(statement, ast.Assign) and statement.value is node
