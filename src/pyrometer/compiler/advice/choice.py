"""One value or another, decided by a tensor: as `torch.where`, or as `torch.cond`."""

from __future__ import annotations

import ast
from typing import NamedTuple

from pyrometer.compiler.advice.expressions import elementwise, has_effects, is_number
from pyrometer.compiler.advice.flow import ARITHMETIC, Flow
from pyrometer.compiler.advice.site import Site

OWNING = frozenset(
    [
        "clone",
        "linear",
        "relu",
        "gelu",
        "silu",
        "softmax",
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "exp",
        "log",
        "sqrt",
        "sum",
        "mean",
        "matmul",
        "mm",
        "bmm",
    ]
)
"""Functions and methods whose result never shares memory with what they are given."""


class Choice(NamedTuple):
    """The text of a choice, and whether `torch.where` makes it."""

    text: str
    by_where: bool


def decide(site: Site, condition: str, one: ast.expr, other: ast.expr) -> Choice | None:
    """The choice between two expressions; `None` where neither way is certain to mean the same.

    `torch.where` needs both sides elementwise over the same names, so that shape, dtype and gradients agree for certain.
    `torch.cond` checks shapes and dtypes by itself, but takes no branch with effects, and no result that is an input.
    """
    if site.torch is None or _counts(site, one, other):
        return None
    forms = elementwise(site, one), elementwise(site, other)
    if forms[0] and forms[0].names and forms[0] == forms[1]:
        return Choice(
            f"{site.torch}.where({condition}, {site.source(one)}, {site.source(other)})", by_where=True
        )
    branches = [_branch(site, side) for side in (one, other)]
    if None in branches:
        return None
    return Choice(f"{site.torch}.cond({condition}, {branches[0]}, {branches[1]}, ())", by_where=False)


def name_and_value(flow: Flow, statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """What a statement assigns to a local name; `None` if it does anything else.

    Assigning in place counts where the name's tensor is a new one of its own, so that nobody sees the difference.
    """
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            pass
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            pass
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=added) if isinstance(op, ARITHMETIC):
            if not flow.is_own(name, statement.lineno):
                return None
            value = ast.BinOp(ast.Name(name, ast.Load()), op, added)
        case _:
            return None
    return None if has_effects(value) or flow.is_shared(name) else (name, value)


def _counts(site: Site, *sides: ast.expr) -> bool:
    """Whether a side reads a name that the function sets to a number: a choice of tensors would change its type."""
    flow = Flow(site)
    names = {node.id for side in sides for node in ast.walk(side) if isinstance(node, ast.Name)}
    bound = (node for name in names for node in flow.bindings(name))
    return any(isinstance(node, ast.Assign) and is_number(node.value) for node in bound)


def _branch(site: Site, side: ast.expr) -> str | None:
    if has_effects(side) or isinstance(
        side, ast.Constant | ast.Lambda | ast.IfExp | ast.BoolOp | ast.Starred
    ):
        return None
    text = site.source(side)
    if isinstance(side, ast.Tuple | ast.List | ast.Dict | ast.ListComp | ast.GeneratorExp | ast.Compare):
        return None
    return f"lambda: {text}" if _is_new(site, side) else f"lambda: {_as_base(side, text)}.clone()"


def _is_new(site: Site, node: ast.expr) -> bool:
    """Whether the value surely is a new tensor."""
    if isinstance(node, ast.BinOp | ast.UnaryOp):
        return True
    name = site.full_name(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name = node.func.attr
    return name in OWNING


def _as_base(node: ast.expr, text: str) -> str:
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"
