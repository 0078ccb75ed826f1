"""Whether a guard's condition holds for values of which some are known.

Conditions are Python: comparisons, arithmetic, `and`, `or`, `not`. What depends on an unknown value is unknown, unless the rest
decides. Nothing is ever executed: the syntax tree is walked, and only what is listed here is understood.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from pyrometer.compiler.recompiles.facts import Facts


class _Unknown:
    """The value of what no guard tells."""


class Opaque(str):
    """A value of which only the text is known, such as `torch.float32`; equal texts are equal values."""

    __slots__ = ()


UNKNOWN = _Unknown()

_ARITHMETIC: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "max": max,
    "min": min,
    "Max": max,
    "Min": min,
    "Mod": operator.mod,
    "FloorDiv": operator.floordiv,
    "abs": abs,
    "frozenset": frozenset,
    "set": set,
}


def literal(text: str) -> Any:
    """The value that a text stands for.

    >>> literal("1.5"), literal("(1, 'a')"), literal("torch.float32"), literal("frozenset({1, 2})") == {2, 1}
    (1.5, (1, 'a'), 'torch.float32', True)
    """
    try:
        node = ast.parse(text, mode="eval").body
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"frozenset", "set"}
        ):
            return _FUNCTIONS[node.func.id](*(ast.literal_eval(argument) for argument in node.args))
        return ast.literal_eval(node)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return Opaque(text)


def equal(one: str, other: str) -> bool:
    """Whether two texts stand for equal values of the same type, as torch compares constants.

    >>> equal("1", "1"), equal("1", "True"), equal("1", "1.0"), equal("{1, 2}", "{2, 1}")
    (True, False, False, True)
    """
    first, second = literal(one), literal(other)
    return one == other or (type(first) is type(second) and bool(first == second))


def truth(condition: str, facts: Facts) -> tuple[bool | None, list[str]]:
    """Whether a condition holds, `None` if unknown; and the expressions in it whose values are known.

    >>> facts = Facts()
    >>> facts.texts["L['x'].size()[0]"] = "5"
    >>> truth("2 <= L['x'].size()[0] <= 3", facts)
    (False, ["L['x'].size()[0]"])
    """
    used: list[str] = []
    try:
        value = _value(ast.parse(condition, mode="eval").body, facts, used)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None, []
    return (value if isinstance(value, bool) else None), list(dict.fromkeys(used))


def _value(node: ast.AST, facts: Facts, used: list[str]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    known = facts.get(ast.unparse(node))
    if known is not None:
        used.append(ast.unparse(node))
        return literal(known)
    if isinstance(node, ast.BoolOp):
        return _either(node, facts, used)
    if isinstance(node, ast.Compare):
        return _compare(node, facts, used)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        operand = _value(node.operand, facts, used)
        return not operand if isinstance(operand, bool) else UNKNOWN
    function, parts = _application(node)
    return _apply(function, *(_value(part, facts, used) for part in parts))


def _application(node: ast.AST) -> tuple[Callable[..., Any] | None, list[ast.expr]]:
    """An operation, and what it is on; no function for what is not understood."""
    if isinstance(node, ast.UnaryOp):
        return _ARITHMETIC.get(type(node.op)), [node.operand]
    if isinstance(node, ast.BinOp):
        return _ARITHMETIC.get(type(node.op)), [node.left, node.right]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _FUNCTIONS.get(node.func.id), node.args
    return None, []


def _either(node: ast.BoolOp, facts: Facts, used: list[str]) -> Any:
    """`and`, `or`: one value that decides is enough, whatever is unknown."""
    decisive = isinstance(node.op, ast.Or)
    values = [_value(part, facts, used) for part in node.values]
    if any(value is decisive for value in values):
        return decisive
    return (not decisive) if all(isinstance(value, bool) for value in values) else UNKNOWN


def _compare(node: ast.Compare, facts: Facts, used: list[str]) -> Any:
    """A chain `a <= b <= c`: false as soon as one link is."""
    values = [_value(part, facts, used) for part in (node.left, *node.comparators)]
    links = [
        _same(left, right, facts, (one, other), negated=isinstance(sign, ast.IsNot))
        if isinstance(sign, (ast.Is, ast.IsNot))
        else _apply(_ARITHMETIC.get(type(sign)), left, right)
        for sign, left, right, one, other in zip(
            node.ops, values, values[1:], (node.left, *node.comparators), node.comparators, strict=False
        )
    ]
    if any(link is False for link in links):
        return False
    return True if all(link is True for link in links) else UNKNOWN


def _same(left: Any, right: Any, facts: Facts, nodes: tuple[ast.AST, ast.AST], *, negated: bool) -> Any:
    """`is`: known for `None`, and for tensors that were checked to be distinct."""
    one, other = (ast.unparse(node) for node in nodes)
    if left is None or right is None:
        return UNKNOWN if UNKNOWN in (left, right) else (left is right) is not negated
    if one != other and any(one in names and other in names for names in facts.distinct):
        return negated
    return UNKNOWN


def _apply(function: Callable[..., Any] | None, *values: Any) -> Any:
    if function is None or any(value is UNKNOWN or isinstance(value, Opaque) for value in values):
        return UNKNOWN
    try:
        return function(*values)
    except (TypeError, ValueError, ArithmeticError):
        return UNKNOWN
