"""Dotted names with the imports of a file resolved, constants, and where a name is assigned and read."""

from __future__ import annotations

import ast
import builtins
import enum
import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pyrometer.source.index import Index
from pyrometer.source.scopes import Scope, Scopes

BUILTINS = frozenset(dir(builtins))
DEEPEST_ALIAS = 5
"""Assignments that an alias of an alias is followed through."""

MOST_DIGITS = 1e18
"""Larger constants are not computed: `2 ** 10 ** 9` is one line of text."""


class Missing(enum.Enum):
    """There is no such thing; of its own type, because None is a constant of Python."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING

ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}


class Names:
    """What the names of one file mean."""

    __slots__ = ("aliases", "bases", "dotted", "index", "scopes", "tree")

    def __init__(self, tree: ast.Module, index: Index, scopes: Scopes) -> None:
        self.tree = tree
        self.index = index
        self.scopes = scopes
        self.bases: dict[ast.Name, str | None] = {}
        self.dotted: dict[tuple[Scope, str], str | None] = {}
        self.aliases: dict[str, set[str]] | None = None

    def name_of(self, expression: ast.expr, depth: int = 0) -> str | None:
        """The dotted name that an expression means once imports are followed; None for anything local."""
        attributes: list[str] = []
        while isinstance(expression, ast.Attribute):
            attributes.append(expression.attr)
            expression = expression.value
        if not isinstance(expression, ast.Name):
            return None
        base = self.base_of(expression, depth)
        if base is None or not attributes:
            return base
        attributes.append(base)
        return ".".join(reversed(attributes))

    def base_of(self, name: ast.Name, depth: int) -> str | None:
        """What a bare name means; remembered by the node, as it is asked for again and again."""
        if name not in self.bases:
            lookup = self.scopes.lookup(name.id, name)
            if lookup is None:
                self.bases[name] = name.id if name.id in BUILTINS else None
            else:
                self.bases[name] = self.bound_to(lookup[0], name.id, lookup[1], depth)
        return self.bases[name]

    def bound_to(self, scope: Scope, name: str, bindings: Sequence[ast.AST], depth: int) -> str | None:
        """What a name means in the scope that binds it."""
        key = (scope, name)
        if key not in self.dotted:
            self.dotted[key] = None if depth > DEEPEST_ALIAS else self.imported(bindings, depth)
        return self.dotted[key]

    def aliases_of(self, wanted: frozenset[str]) -> set[str]:
        """The last parts of names under which the file knows these dotted names."""
        if self.aliases is None:
            self.aliases = self.collect_aliases()
        return {alias for name in wanted for alias in self.aliases.get(name, ())}

    def collect_aliases(self) -> dict[str, set[str]]:
        """Other names that the file gives to dotted ones, by `import … as` or by assigning them."""
        found: dict[str, set[str]] = defaultdict(set)
        for alias in self.index.nodes((ast.alias,)):
            if alias.asname:
                found[self.target(alias)].add(alias.asname)
        for assignment in self.index.nodes((ast.Assign,)):
            name = (
                self.name_of(assignment.value)
                if isinstance(assignment.value, ast.Attribute | ast.Name)
                else None
            )
            if name is not None:
                found[name].update(target.id for target in assignment.targets if isinstance(target, ast.Name))
        return dict(found)

    def imported(self, bindings: Sequence[ast.AST], depth: int) -> str | None:
        """The import behind a name; a fall-back for when the import fails does not hide it."""
        imports = [node for node in bindings if isinstance(node, ast.alias)]
        others = [node for node in bindings if not isinstance(node, ast.alias)]
        if imports:
            return None if any(not self.is_fallback(node) for node in others) else self.target(imports[0])
        if len(others) == 1 and isinstance(others[0], ast.Name):
            assigned = self.assigned_to(others[0])
            if isinstance(assigned, ast.Attribute | ast.Name):
                return self.name_of(assigned, depth + 1)
        return None

    def target(self, alias: ast.alias) -> str:
        """The dotted name that an import binds."""
        statement = self.index.parents[alias]
        if isinstance(statement, ast.ImportFrom):
            module = "." * statement.level + (statement.module or "")
            return f"{module}{'' if module.endswith('.') else '.'}{alias.name}"
        return alias.name if alias.asname else alias.name.partition(".")[0]

    def is_fallback(self, node: ast.AST) -> bool:
        """Whether a binding only stands in for a missing import."""
        if isinstance(node, ast.Name):
            assigned = self.assigned_to(node)
            if isinstance(assigned, ast.Constant) and assigned.value in (None, False):
                return True
        return any(isinstance(above, ast.ExceptHandler) for above in self.index.ancestors(node))

    def assigned_to(self, name: ast.Name) -> ast.expr | None:
        """The expression that a plain assignment gives to this name."""
        parent = self.index.parents.get(name)
        if isinstance(parent, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            return parent.value
        return None

    def literal(self, expression: ast.expr | None, depth: int = 0) -> object:
        """The constant that an expression is, or MISSING."""
        if isinstance(expression, ast.Constant):
            return expression.value
        if depth > 2 * DEEPEST_ALIAS:
            return MISSING
        if isinstance(expression, ast.Name):
            return self.constant(expression, depth + 1)
        if isinstance(expression, ast.UnaryOp):
            return self.signed(expression, depth + 1)
        if isinstance(expression, ast.BinOp):
            return self.computed(expression, depth + 1)
        return self.display(expression, depth + 1)

    def constant(self, name: ast.Name, depth: int) -> object:
        """The constant behind a name that is assigned once."""
        lookup = self.scopes.lookup(name.id, name)
        if lookup is None or len(lookup[1]) != 1:
            return MISSING
        binding = lookup[1][0]
        return self.literal(self.assigned_to(binding), depth) if isinstance(binding, ast.Name) else MISSING

    def signed(self, expression: ast.UnaryOp, depth: int) -> object:
        """A constant with a sign or `not`."""
        operand = self.literal(expression.operand, depth)
        if operand is MISSING:
            return MISSING
        if isinstance(expression.op, ast.Not):
            return not operand
        if not isinstance(operand, int | float | complex):
            return MISSING
        return -operand if isinstance(expression.op, ast.USub) else operand

    def computed(self, expression: ast.BinOp, depth: int) -> object:
        """Small arithmetic on constants, such as 1024 * 16."""
        left, right = self.literal(expression.left, depth), self.literal(expression.right, depth)
        compute = ARITHMETIC.get(type(expression.op))
        if compute is None or not isinstance(left, int | float) or not isinstance(right, int | float):
            return MISSING
        if abs(left) > MOST_DIGITS or abs(right) > (
            64 if compute in (operator.pow, operator.lshift) else MOST_DIGITS
        ):
            return MISSING
        try:
            return compute(left, right)
        except (ArithmeticError, TypeError, ValueError):
            return MISSING

    def display(self, expression: ast.expr | None, depth: int) -> object:
        """A tuple, list, set or dict of constants."""
        if isinstance(expression, ast.Dict):
            keys = [self.literal(key, depth) for key in expression.keys]
            values = [self.literal(value, depth) for value in expression.values]
            if MISSING in keys or MISSING in values:
                return MISSING
            return hashed(dict, zip(keys, values, strict=True))
        make = DISPLAYS.get(type(expression)) if expression is not None else None
        if make is None:
            return MISSING
        parts = [self.literal(part, depth) for part in getattr(expression, "elts", ())]
        return MISSING if MISSING in parts else hashed(make, parts)

    def assignments(self, name: str, around: ast.AST) -> Sequence[ast.expr]:
        """The expressions that are assigned to a name in the scope that binds it, as seen from a node."""
        lookup = self.scopes.lookup(name, around)
        if lookup is None:
            return ()
        return tuple(value for node in lookup[1] if (value := self.value_given(node)) is not None)

    def value_given(self, binding: ast.AST) -> ast.expr | None:
        """What one binding assigns: of a tuple the fitting part, else the whole."""
        path: list[tuple[ast.Tuple | ast.List, ast.AST]] = []
        child = binding
        for above in self.index.ancestors(binding):
            if isinstance(above, ast.Tuple | ast.List):
                path.append((above, child))
            elif isinstance(above, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
                return None if above.value is None else part_of(above.value, path)
            elif isinstance(above, ast.withitem):
                return above.context_expr
            elif not isinstance(above, ast.Starred):
                return None
            child = above
        return None

    def uses(self, name: str, around: ast.AST) -> Iterator[ast.Name]:
        """The places that read the name that is bound as seen from a node, closures included."""
        lookup = self.scopes.lookup(name, around)
        for load in self.scopes.loads_of(name):
            other = self.scopes.lookup(name, load)
            if (other[0] if other else None) is (lookup[0] if lookup else None):
                yield load


DISPLAYS: dict[type[ast.AST], Callable[[Any], object]] = {ast.Tuple: tuple, ast.List: list, ast.Set: set}


def hashed(make: Callable[[Any], object], parts: object) -> object:
    """A container of these, or MISSING where one would have to be hashable and is not."""
    try:
        return make(parts)
    except TypeError:
        return MISSING


def part_of(value: ast.expr, path: Sequence[tuple[ast.Tuple | ast.List, ast.AST]]) -> ast.expr:
    """The part of a tuple that goes to a target in `a, b = x, y`; the whole if it is no such tuple."""
    for around, child in reversed(path):
        fits = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(around.elts)
        if not fits or any(isinstance(part, ast.Starred) for part in around.elts):
            return value
        value = value.elts[[part is child for part in around.elts].index(True)]  # type: ignore[attr-defined]  # fits
    return value
