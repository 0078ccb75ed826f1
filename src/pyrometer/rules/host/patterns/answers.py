"""Reads whose value is the answer to a request: the handler cannot answer without waiting for it once."""

from __future__ import annotations

import ast

from pyrometer.rules.rule import Module

FURTHEST = 4
"""Names that a value is followed through."""

SENDING = ("send", "write")
"""How the names of methods begin that give an answer away: `websocket.send_json(scores.tolist())`."""

COLLECTING = frozenset({"append", "extend", "add", "update", "insert", "setdefault"})


def is_answer(module: Module, node: ast.expr, depth: int = 0) -> bool:
    """Whether a value is returned, yielded or sent by its function, also through names and containers.

    A read for every element of a comprehension is not: the elements can be fetched together.
    """
    child: ast.AST = node
    for above in module.ancestors(node):
        if isinstance(above, ast.Return | ast.Yield | ast.YieldFrom) or _sends(above, child):
            return True
        if depth == 0 and _per_element(above, child):
            return False
        targets = _targets(above, child)
        if targets or isinstance(above, ast.stmt | ast.Lambda):
            return any(_goes_on(module, target, node, depth) for target in targets)
        child = above
    return False


def _sends(above: ast.AST, child: ast.AST) -> bool:
    """Whether a call gives its argument away."""
    return (
        isinstance(above, ast.Call)
        and isinstance(above.func, ast.Attribute)
        and child is not above.func
        and above.func.attr.startswith(SENDING)
    )


def _per_element(above: ast.AST, child: ast.AST) -> bool:
    """Whether a part of a comprehension is evaluated for each of its elements."""
    if isinstance(above, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        return child is not above.generators[0]
    return isinstance(above, ast.comprehension) and child is not above.iter


def _targets(above: ast.AST, child: ast.AST) -> list[ast.expr]:
    """Where a statement or a container's method puts a value."""
    if isinstance(above, ast.Assign):
        return above.targets
    if isinstance(above, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        return [above.target]
    if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and child is not above.func:
        return [above.func.value] if above.func.attr in COLLECTING else []
    return []


def _goes_on(module: Module, target: ast.expr, node: ast.expr, depth: int) -> bool:
    """Whether what is assigned to a target, or put into it, is part of the answer later."""
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Tuple | ast.List):
        return any(_goes_on(module, element, node, depth) for element in target.elts)
    if not isinstance(target, ast.Name) or depth >= FURTHEST:
        return False
    function = module.function_of(node)
    return any(
        use.lineno > node.lineno and module.function_of(use) is function and is_answer(module, use, depth + 1)
        for use in module.uses(target.id, target)
    )
