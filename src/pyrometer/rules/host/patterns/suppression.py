"""Loops that drop boxes which overlap with a better one: non-maximum suppression, written in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from pyrometer.rules.rule import Module
from pyrometer.source.index import FunctionNode, Loop

HINT = re.compile(
    r"(^|[^a-z])(nms|iou\w*|ious|overlap\w*|jaccard|suppress\w*|intersection\w*)([^a-z]|$)", re.IGNORECASE
)
"""Words of code that compares boxes."""

KEEPING = frozenset({"append", "pop", "remove", "popleft", "add", "discard"})


class Suppression(NamedTuple):
    """One outermost loop that suppresses."""

    function: FunctionNode
    loop: Loop

    def holds(self, line: int) -> bool:
        """Whether a line belongs to the loop."""
        return self.loop.lineno <= line <= (self.loop.end_lineno or self.loop.lineno)


def suppressions(module: Module) -> Iterator[Suppression]:
    """The loops of a file that keep and drop elements by comparing an overlap with a threshold."""
    if HINT.search(module.text) is None:
        return
    for loop in module.nodes(ast.For, ast.While):
        function = module.function_of(loop)
        if function is None or any(isinstance(above, Loop) for above in module.loops_around(loop)):
            continue
        if (
            HINT.search(module.source(function))
            and _keeps(loop)
            and any(_decides(module, node) for node in ast.walk(loop))
        ):
            yield Suppression(function, loop)


def _keeps(loop: Loop) -> bool:
    """Whether rounds collect or drop elements."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEEPING:
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            return True
    return False


def _decides(module: Module, node: ast.AST) -> bool:
    """Whether a node compares an overlap, and something is left out, or kept, by it."""
    if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        return False
    return any(_is_overlap(module, side) for side in (node.left, *node.comparators))


def _is_overlap(module: Module, side: ast.expr) -> bool:
    if HINT.search(module.source(side)):
        return True
    names = [name for name in ast.walk(side) if isinstance(name, ast.Name)]
    return any(
        HINT.search(module.source(value)) for name in names for value in module.assignments(name.id, name)
    )
