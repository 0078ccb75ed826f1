"""Whether code runs each time that the loop or function around it does, or only once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pyrometer.rules.rule import Module

CACHES = frozenset({"functools.cache", "functools.lru_cache", "functools.cached_property"})


def is_guarded(module: Module, node: ast.AST) -> bool:
    """Whether a test decides if a node runs, as in `if self.compiled is None`, or its function's results are kept."""
    child = node
    for above in module.ancestors(node):
        if isinstance(above, ast.If | ast.IfExp) and child is not above.test:
            return True
        if isinstance(above, ast.ExceptHandler | ast.BoolOp):
            return True
        if isinstance(above, ast.For | ast.AsyncFor | ast.While):
            return False
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
            return _is_cached(module, above) or _leaves_before(above, child)
        child = above
    return False


def is_invariant(
    module: Module, expressions: list[ast.expr], loop: ast.For | ast.AsyncFor | ast.While
) -> bool:
    """Whether expressions are the same in each round of a loop: nothing that they read is bound in it."""
    bound = set(_bound(loop))
    read = {
        node.id for expression in expressions for node in ast.walk(expression) if isinstance(node, ast.Name)
    }
    stored = {module.source(node) for node in _stores(loop)}
    attributes = {
        module.source(node)
        for expression in expressions
        for node in ast.walk(expression)
        if isinstance(node, ast.Attribute | ast.Subscript)
    }
    return not read & bound and not attributes & stored


def _is_cached(module: Module, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = (
        module.name_of(decorator.func if isinstance(decorator, ast.Call) else decorator)
        for decorator in function.decorator_list
    )
    return any(name in CACHES for name in names)


def _leaves_before(function: ast.FunctionDef | ast.AsyncFunctionDef, child: ast.AST) -> bool:
    """Whether a statement above may return early: `if self.compiled is not None: return self.compiled`."""
    for statement in function.body:
        if statement is child:
            return False
        if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Return):
            return True
    return False


def _bound(loop: ast.AST) -> Iterator[str]:
    for node in ast.walk(loop):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name


def _stores(loop: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(loop):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            yield node
