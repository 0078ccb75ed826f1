"""Whether an expression is a Python number, as far as the text of a file tells."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pyrometer.source.value import NONE, Kind

if TYPE_CHECKING:
    from pyrometer.source.module import Module

DEEPEST = 8
NUMERIC = frozenset(["int", "float", "len", "abs", "min", "max", "round"])
ANNOTATIONS = frozenset(["int", "float"])


def is_number(module: Module, node: ast.AST, depth: int = 0) -> bool:
    """Whether an expression is surely an int or float: arithmetic on sizes, constants and what a class computes of them."""
    if depth > DEEPEST:
        return False
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case ast.BinOp(left=left, right=right):
            return is_number(module, left, depth + 1) and is_number(module, right, depth + 1)
        case ast.UnaryOp(operand=operand):
            answer = is_number(module, operand, depth + 1)
        case ast.Call():
            answer = _is_number_call(module, node)
        case ast.Subscript(value=whole, slice=index):
            answer = _is_size(whole) and not isinstance(index, ast.Slice)
        case ast.Name():
            answer = _is_number_name(module, node, depth)
        case ast.Attribute():
            answer = _is_number_attribute(module, node, depth)
        case _:
            answer = False
    return answer


def _is_number_call(module: Module, call: ast.Call) -> bool:
    name = module.name_of(call.func) or ""
    if name.startswith("math.") or name in NUMERIC:
        return True
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return (method == "size" and bool(call.args)) or method in {"dim", "numel"}


def _is_size(node: ast.AST) -> bool:
    """`x.shape` and `x.size()`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "size" and not node.args
    return isinstance(node, ast.Attribute) and node.attr == "shape"


def _is_number_name(module: Module, name: ast.Name, depth: int) -> bool:
    """A name of which every binding is a number: assigned one, unpacked from a shape, or an argument that says so."""
    value = module.value_of(name)
    if value.is_tensor or value == NONE:
        return False
    bindings = _bindings(module, name)
    return bool(bindings) and all(_binds_number(module, binding, depth + 1) for binding in bindings)


def _binds_number(module: Module, binding: ast.AST, depth: int) -> bool:
    if isinstance(binding, ast.arg):
        annotation = binding.annotation
        return isinstance(annotation, ast.Name) and annotation.id in ANNOTATIONS
    above = module.parent(binding)
    if isinstance(above, (ast.Assign, ast.AnnAssign)) and above.value is not None:
        return is_number(module, above.value, depth)
    if isinstance(above, ast.Tuple):
        unpacking = module.parent(above)
        return (
            isinstance(unpacking, ast.Assign)
            and _is_size(unpacking.value)
            and not any(isinstance(part, ast.Starred) for part in above.elts)
        )
    return False


def _is_number_attribute(module: Module, node: ast.Attribute, depth: int) -> bool:
    """`self.scale`, where the class gives it nothing but numbers; in arithmetic, arguments of `__init__` count as such."""
    around = module.class_of(node)
    if not (isinstance(node.value, ast.Name) and node.value.id == "self") or around is None:
        return module.value_of(node).kind is Kind.HOST and node.attr in {"pi", "e", "inf"}
    given = [
        assignment
        for assignment in ast.walk(around)
        if isinstance(assignment, ast.Assign)
        and any(
            isinstance(target, ast.Attribute) and target.attr == node.attr for target in assignment.targets
        )
    ]
    return bool(given) and all(
        is_number(module, assignment.value, depth + 1) or _is_arithmetic(module, assignment.value, depth + 1)
        for assignment in given
    )


def _is_arithmetic(module: Module, node: ast.AST, depth: int) -> bool:
    """Arithmetic on numbers and on the arguments of the function around it."""
    if not isinstance(node, ast.BinOp):
        return False
    return all(
        is_number(module, side, depth)
        or _is_arithmetic(module, side, depth + 1)
        or (isinstance(side, ast.Name) and _is_argument(module, side))
        for side in (node.left, node.right)
    )


def _is_argument(module: Module, name: ast.Name) -> bool:
    bindings = _bindings(module, name)
    return bool(bindings) and all(isinstance(binding, ast.arg) for binding in bindings)


def _bindings(module: Module, name: ast.Name) -> tuple[ast.AST, ...]:
    lookup = module.scopes.lookup(name.id, name)
    return () if lookup is None else tuple(lookup[1])
