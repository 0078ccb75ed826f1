"""Which scope of a file binds which name, by Python's rules."""

from __future__ import annotations

import ast
from collections import defaultdict

from pyrometer.source.index import Index

Scope = ast.AST
"""A Module, function, lambda, class or comprehension."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BINDERS = (
    ast.arg,
    ast.alias,
    *FUNCTIONS,
    ast.ClassDef,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
    ast.MatchMapping,
)
"""Nodes other than names that bind one."""


class Scopes:
    """The bindings of every scope, found at the first question."""

    __slots__ = ("bound", "declared", "index", "loads", "tree")

    def __init__(self, tree: ast.Module, index: Index) -> None:
        self.tree = tree
        self.index = index
        self.bound: dict[Scope, dict[str, list[ast.AST]]] | None = None
        self.declared: dict[Scope, dict[str, bool]] = defaultdict(dict)
        self.loads: dict[str, list[ast.Name]] | None = None

    def scope_of(self, node: ast.AST) -> Scope:
        """The scope in which a node is evaluated."""
        parents = self.index.parents
        below, child = node, node
        while not isinstance(child, ast.stmt):
            above = parents.get(child)
            if above is None:
                return self.tree
            if isinstance(above, ast.Lambda) and child is above.body:
                return above
            if isinstance(above, COMPREHENSIONS):
                first = above.generators[0]
                if child is not first or below is not first.iter:  # The first iterable is evaluated outside.
                    return above
            below, child = child, above
        return self.index.owner_of(child)

    def bindings(self, scope: Scope) -> dict[str, list[ast.AST]]:
        """The names that a scope binds, each with the nodes that bind it, in the order of the text."""
        if self.bound is None:
            self.bound = self.collect()
        return self.bound.get(scope, {})

    def collect(self) -> dict[Scope, dict[str, list[ast.AST]]]:
        """All bindings of all scopes."""
        bound: dict[Scope, dict[str, list[ast.AST]]] = {}
        for declaration in self.index.nodes((ast.Global, ast.Nonlocal)):
            scope = self.scope_of(declaration)
            is_global = isinstance(declaration, ast.Global)
            self.declared[scope].update(dict.fromkeys(declaration.names, is_global))
        for name in self.index.nodes((ast.Name,)):
            if not isinstance(name.ctx, ast.Load):
                self.bind(bound, self.binding_scope(name), name.id, name)
        for node in self.index.nodes(BINDERS):
            for bound_name in names_bound(node):
                self.bind(bound, self.owner(node), bound_name, node)
        return bound

    def owner(self, node: ast.AST) -> Scope:
        """The scope that a def, class, import, argument, handler or pattern binds in."""
        if isinstance(node, ast.arg):
            arguments = self.index.parents[node]
            return self.index.parents.get(arguments, self.tree)
        return self.scope_of(node)

    def binding_scope(self, name: ast.Name) -> Scope:
        """Where an assigned name is bound; the walrus binds outside of comprehensions."""
        scope = self.scope_of(name)
        if isinstance(self.index.parents.get(name), ast.NamedExpr):
            while isinstance(scope, COMPREHENSIONS):
                scope = self.scope_of(scope)
        return scope

    def bind(
        self, bound: dict[Scope, dict[str, list[ast.AST]]], scope: Scope, name: str, node: ast.AST
    ) -> None:
        """Note one binding, where `global` and `nonlocal` say."""
        is_global = self.declared.get(scope, {}).get(name)
        if is_global is not None:
            scope = self.tree if is_global else self.enclosing_function(scope)
        bound.setdefault(scope, {}).setdefault(name, []).append(node)

    def enclosing_function(self, scope: Scope) -> Scope:
        """The next scope outside that a `nonlocal` may mean."""
        outer = self.scope_of(scope)
        while isinstance(outer, ast.ClassDef):
            outer = self.scope_of(outer)
        return outer

    def lookup(self, name: str, node: ast.AST) -> tuple[Scope, list[ast.AST]] | None:
        """The scope that binds a name as seen from a node, and what binds it; None for builtins and the unknown."""
        scope = self.scope_of(node)
        first = True
        while True:
            if first or not isinstance(scope, ast.ClassDef):
                binding = self.bindings(scope).get(name)
                if binding is not None:
                    return scope, binding
            if scope is self.tree:
                return None
            scope = self.scope_of(scope)
            first = False

    def loads_of(self, name: str) -> list[ast.Name]:
        """Every place of the file that reads a name of this spelling."""
        if self.loads is None:
            loads: dict[str, list[ast.Name]] = defaultdict(list)
            for node in self.index.nodes((ast.Name,)):
                if isinstance(node.ctx, ast.Load):
                    loads[node.id].append(node)
            self.loads = dict(loads)
        return self.loads.get(name, [])


def names_bound(node: ast.AST) -> list[str]:
    """The names that a node other than a name binds."""
    if isinstance(node, ast.arg):
        return [node.arg]
    if isinstance(node, ast.alias):
        return [node.asname or node.name.partition(".")[0]]
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    name = getattr(node, "name", None)
    return [name] if isinstance(name, str) else []
