"""Where the values of a function go: which names hold tensors, and where a number taken out of a tensor ends up.

A number may stay a tensor of one element if all that becomes of it is arithmetic with tensors. As soon as it is returned,
stored, compared in a test, or handed to a function, it may be needed as a number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from pyrometer.compiler.advice.expressions import FLOAT, REDUCTIONS, SAME, is_number, operation
from pyrometer.compiler.advice.site import Site
from pyrometer.source.module import FunctionNode
from pyrometer.source.value import TENSOR, UNKNOWN

ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
ABSORBING = frozenset(["add", "sub", "mul", "div", "where", "add_", "sub_", "mul_", "div_"])
"""Functions of tensors that take a number or a tensor of one element alike."""

TENSORS_ALONE = frozenset(["long", "float", "double", "half", "bfloat16", "detach", "unsqueeze"])
"""Methods that nothing but a tensor has."""

NEW = (ast.BinOp, ast.UnaryOp)


class Flow:
    """The names of one function; of the whole file where the code stands in none."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.module = site.module
        self.scope: FunctionNode | ast.Module = site.function or self.module.tree
        self._inside = self.scope.body[0] if self.scope.body else self.scope
        self.parent = self.module.index.parents
        self.module.flow.claims.setdefault(self.scope, dict.fromkeys(self._reduced(), TENSOR))

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether an expression is a tensor, as far as the function shows."""
        if self.module.value_of(node).is_tensor:
            return True
        match node:
            case ast.Name(id=name) if node not in self.parent:  # written by a rewrite
                return self.holds_tensor(name)
            case ast.BinOp(left=left, right=right):
                return self.is_tensor(left) or self.is_tensor(right)
            case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner):
                return self.is_tensor(inner)
        called = operation(self.site, node)
        return called is not None and called[0] in REDUCTIONS

    def holds_tensor(self, name: str) -> bool:
        """Whether a name holds a tensor wherever it is assigned."""
        self.module.flow.refine(self.scope)
        return self.module.flow.ever[self.scope].get(name, UNKNOWN).is_tensor

    def absorbed(self, node: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a number, were it a tensor of one element, would only enter arithmetic with tensors."""
        above, found = self.parent.get(node), False
        match above:
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, ARITHMETIC):
                other = right if left is node else left
                found = self.is_tensor(other) or (not _is_sequence(other) and self.absorbed(above, seen))
            case ast.UnaryOp(op=ast.USub()):
                found = self.absorbed(above, seen)
            case ast.Compare(left=left, ops=[_], comparators=[right]):
                found = self.is_tensor(right if left is node else left) and not self._is_test(above)
            case ast.Assign(targets=[ast.Name(id=name)]) if not isinstance(node, ast.Name):
                found = self._name_absorbed(name, seen)
            case ast.AugAssign(target=ast.Name(id=name), op=op) if isinstance(op, ARITHMETIC):
                found = self.holds_tensor(name) or self._name_absorbed(name, seen)
            case ast.Call():
                called = operation(self.site, above)
                others = [inner for inner in called[1] if inner is not node] if called else []
                found = called is not None and called[0] in ABSORBING and any(map(self.is_tensor, others))
        return found

    def stays_open(self, node: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a number may be an open one in the graph: it ends in tensor arithmetic, as an index of a tensor, or is returned."""
        above, found = self.parent.get(node), False
        match above:
            case ast.Return():
                found = True
            case ast.Tuple():
                found = isinstance(self.parent.get(above), ast.Return)
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                found = self.is_tensor(right if left is node else left)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
                found = is_number(right if left is node else left) and self.stays_open(above, seen)
            case ast.Subscript(value=value, slice=index) if index is node:
                found = self.is_tensor(value)
            case ast.Assign(targets=[ast.Name(id=name)]):
                found = self.name_stays_open(name, seen)
        return found or self.absorbed(node)

    def name_stays_open(self, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """The same for a number by its name: at every place that reads it."""
        return name in seen or (
            not self.is_shared(name)
            and all(self.stays_open(load, seen | {name}) for load in self.loads(name))
        )

    def loads(self, name: str) -> Sequence[ast.Name]:
        """Every place that reads a name."""
        return self.module.uses(name, self._inside)

    def bindings(self, name: str) -> list[ast.AST]:
        """Statements and other places that give a name its value, arguments apart."""
        bound = self.module.scopes.lookup(name, self._inside)
        return [self.parent[node] for node in (bound[1] if bound else ()) if isinstance(node, ast.Name)]

    def arguments(self) -> set[str]:
        """Names of the function's arguments."""
        arguments = getattr(self.scope, "args", None)
        return {node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg)} if arguments else set()

    def is_shared(self, name: str) -> bool:
        """Whether a name is declared global or nonlocal somewhere."""
        return any(
            isinstance(node, ast.Global | ast.Nonlocal) and name in node.names
            for node in ast.walk(self.scope)
        )

    def is_own(self, name: str, before: int) -> bool:
        """Whether a name holds a new result of arithmetic there, that no other name shares: it may be changed in place."""
        earlier = [node for node in self.bindings(name) if getattr(node, "lineno", before) < before]
        last = max(earlier, key=lambda node: getattr(node, "lineno", 0), default=None)
        again = bool(self.site.loops)
        loads = [load for load in self.loads(name) if again or load.lineno < before]
        return (
            isinstance(last, ast.Assign) and isinstance(last.value, NEW) and all(map(self._makes_new, loads))
        )

    def is_bound(self, name: str, before: int) -> bool:
        """Whether a name has a value at a line: an argument, or bound above it without a condition."""
        block, _ = self.site.siblings(self.site.statement) if self.site.statement else ([], 0)
        return name in self.arguments() or any(
            isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
            and node.lineno < before
            and self._is_certain(node, block)
            for node in self.bindings(name)
        )

    def _makes_new(self, node: ast.AST) -> bool:
        """Whether a place that reads a tensor makes a new one of it, so that nothing there shares its memory."""
        above = self.parent.get(node)
        if isinstance(above, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Return):
            return True
        called = self.parent.get(above) if isinstance(above, ast.Attribute) else above
        found = operation(self.site, called) if called is not None else None
        return found is not None and found[0] in (REDUCTIONS | SAME | FLOAT) - {"detach"}

    def _is_certain(self, node: ast.stmt, block: list[ast.stmt]) -> bool:
        return node in block or node in getattr(self.scope, "body", [])

    def _name_absorbed(self, name: str, seen: frozenset[str]) -> bool:
        if name in seen:
            return True
        return not self.is_shared(name) and all(
            self.absorbed(load, seen | {name}) for load in self.loads(name)
        )

    def _is_test(self, node: ast.AST) -> bool:
        above = self.parent.get(node)
        if isinstance(above, ast.BoolOp | ast.UnaryOp):
            return self._is_test(above) or isinstance(above, ast.BoolOp) or isinstance(above.op, ast.Not)
        return node is getattr(above, "test", None)

    def _reduced(self) -> Iterator[ast.AST]:
        """What binds names of tensors: in traced code `x.abs().max()` and `(x > 0).sum()` tell that `x` is one, and so is the result."""
        for node in ast.walk(self.scope):
            called = operation(self.site, node)
            if called is None or called[0] not in REDUCTIONS | TENSORS_ALONE or not called[1]:
                continue
            match self.parent.get(node):
                case ast.Assign(targets=[ast.Name() as target]):
                    yield target
            root = _without_number(called[1][0])
            while (inner := operation(self.site, root)) is not None and inner[1]:
                root = _without_number(inner[1][0])
            if isinstance(root, ast.Name) and root.id != "self" and not self.site.is_imported(root):
                bound = self.module.scopes.lookup(root.id, root)
                yield from bound[1] if bound else ()


def _without_number(node: ast.expr) -> ast.expr:
    """The tensor of `x > 0` and `x * 2`, where these are tensors."""
    match node:
        case (
            ast.Compare(left=inner, ops=[_], comparators=[number])
            | ast.BinOp(left=inner, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right=number)
        ) if is_number(number):
            return inner
    return node


def _is_sequence(node: ast.AST) -> bool:
    if isinstance(node, ast.List | ast.Tuple | ast.JoinedStr | ast.ListComp | ast.Dict):
        return True
    return isinstance(node, ast.Constant) and not is_number(node)
