"""What one expression of a printed graph calls, and what it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.USub: "neg",
    ast.UAdd: "pos",
    ast.Invert: "invert",
    ast.Not: "not_",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Is: "is_",
    ast.IsNot: "is_not",
    ast.In: "contains",
}
"""Python's operators by the names they have in the module `operator`."""

_ROOT = "self"


class Expression(NamedTuple):
    """One expression."""

    op: str
    target: str
    inputs: tuple[str, ...]
    module: str = ""


def read_expression(value: ast.expr, names: Mapping[str, str]) -> Expression:
    """What an expression calls, and the nodes that it reads, in the order in which they are written.

    Args:
        value: the expression.
        names: names of nodes by the variables that hold them.

    >>> def read(text): return read_expression(ast.parse(text, mode="eval").body, {"x": "x", "y": "y"})
    >>> read("torch.ops.aten.add.Tensor(y, x, alpha = 2)")[:3]
    ('call', 'aten.add.Tensor', ('y', 'x'))
    >>> read("x @ y").target, read("x.view(4)").target, read("self.fc1(x)").module, read("self.weight").op
    ('operator.matmul', 'Tensor.view', 'fc1', 'attribute')
    """
    inputs = read_names(value, names)
    if isinstance(value, ast.Call):
        return _call(value, inputs, names)
    attribute = _attribute_of_root(value)
    if attribute is not None:
        return Expression("attribute", attribute, ())
    return Expression("call", _target(value, names), inputs)


def read_names(value: ast.AST, names: Mapping[str, str]) -> tuple[str, ...]:
    """The nodes that stand in an expression, each once, in the order in which they are written."""
    return tuple(dict.fromkeys(names[name] for name in _variables(value) if name in names))


def operator_name(operator: ast.operator, *, in_place: bool = False) -> str:
    """The function of the module `operator` that an operator stands for.

    >>> operator_name(ast.Add()), operator_name(ast.BitAnd(), in_place=True)
    ('operator.add', 'operator.iand')
    """
    name = _OPERATORS.get(type(operator), "unknown")
    return f"operator.i{name.rstrip('_')}" if in_place else f"operator.{name}"


def _call(value: ast.Call, inputs: tuple[str, ...], names: Mapping[str, str]) -> Expression:
    attribute = _attribute_of_root(value)
    if attribute is not None:  # getattr(self, "0")
        return Expression("attribute", attribute, ())
    module = _attribute_of_root(value.func)
    if module is not None:
        return Expression("call", module, inputs, module)
    return Expression("call", _target(value.func, names), inputs)


def _target(function: ast.expr, names: Mapping[str, str]) -> str:
    """The qualified name of what is called."""
    operator = _operator(function)
    if operator is not None:
        return f"operator.{_OPERATORS.get(type(operator), 'unknown')}"
    if isinstance(function, ast.Subscript):
        return "operator.getitem"
    dotted = _dotted(function)
    if dotted is None:
        return ast.unparse(function)
    root, _, rest = dotted.partition(".")
    return f"Tensor.{rest}" if root in names and rest else _public(dotted)


def _operator(value: ast.expr) -> ast.AST | None:
    if isinstance(value, ast.Compare):
        return value.ops[0]
    return value.op if isinstance(value, (ast.BinOp, ast.UnaryOp)) else None


def _public(target: str) -> str:
    """The name under which users know it."""
    for private, public in (
        ("torch.ops.", ""),
        ("torch._C._nn.", "torch.nn.functional."),
        ("_operator.", "operator."),
    ):
        if target.startswith(private):
            return public + target[len(private) :]
    return target


def _dotted(value: ast.expr) -> str | None:
    parts = []
    while isinstance(value, ast.Attribute):
        parts.append(value.attr)
        value = value.value
    if not isinstance(value, ast.Name):
        return None
    return ".".join([value.id, *reversed(parts)])


def _attribute_of_root(value: ast.expr) -> str | None:
    """`layers.0` of `getattr(self.layers, "0")`; `None` for what is no attribute of the graph module."""
    if isinstance(value, ast.Attribute):
        holder, name = value.value, value.attr
    elif (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id == "getattr"
        and len(value.args) == 2
        and isinstance(value.args[1], ast.Constant)
    ):
        holder, name = value.args[0], str(value.args[1].value)
    else:
        return None
    if isinstance(holder, ast.Name):
        return name if holder.id == _ROOT else None
    outer = _attribute_of_root(holder)
    return None if outer is None else f"{outer}.{name}"


def _variables(value: ast.AST) -> Iterator[str]:
    if isinstance(value, ast.Name):
        yield value.id
    for child in ast.iter_child_nodes(value):
        yield from _variables(child)
