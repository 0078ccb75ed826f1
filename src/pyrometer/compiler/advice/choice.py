"""One value or another, decided by a tensor: as `torch.where`, or as `torch.cond`."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

import torch

from pyrometer.compiler.advice.expressions import elementwise, has_effects, is_number
from pyrometer.compiler.advice.flow import ARITHMETIC, Flow
from pyrometer.compiler.advice.site import Site

VIEWS = re.compile(
    "view|view_as|reshape|reshape_as|squeeze|unsqueeze|expand|expand_as|flatten|unflatten|transpose|permute|movedim|swapaxes|t|"
    "narrow|select|diagonal|unfold|chunk|split|detach|contiguous|to|type|float|double|half|bfloat16|int|long|bool|cpu|cuda"
)
"""Methods whose result may share memory with what they are called on; `torch.cond` takes no such result."""


class Choice(NamedTuple):
    """The text of a choice, and whether `torch.where` makes it."""

    text: str
    by_where: bool


def decide(site: Site, condition: str, one: ast.expr, other: ast.expr) -> Choice | None:
    """The choice between two expressions; `None` where neither way is certain to mean the same.

    One side at least must show that it is a tensor: a choice of numbers would become a tensor too, and may be needed as a
    number. `torch.where` needs both sides elementwise over the same names, so that shape, dtype and gradients agree for certain.
    `torch.cond` checks shapes and dtypes by itself, but takes no branch with effects, and no result that is an input.
    """
    flow = Flow(site)
    if site.torch is None or _counts(flow, one, other) or not any(map(flow.is_tensor, (one, other))):
        return None
    forms = elementwise(site, one), elementwise(site, other)
    if forms[0] and forms[0].names and forms[0] == forms[1]:
        return Choice(
            f"{site.torch}.where({condition}, {site.source(one)}, {site.source(other)})", by_where=True
        )
    branches = [_branch(site, side) for side in (one, other)]
    if None in branches or not hasattr(torch, "cond"):
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


def _counts(flow: Flow, *sides: ast.expr) -> bool:
    """Whether a side reads a name that the function sets to a number: a choice of tensors would change its type."""
    names = {node.id for side in sides for node in ast.walk(side) if isinstance(node, ast.Name)}
    bound = (node for name in names for node in flow.bindings(name))
    return any(isinstance(node, ast.Assign) and is_number(node.value) for node in bound)


def _branch(site: Site, side: ast.expr) -> str | None:
    """A branch for `torch.cond`: a function that gives a new tensor; `None` for what surely is none."""
    match side:
        case ast.BinOp() | ast.UnaryOp(op=ast.USub()):
            shares = False
        case ast.Call(func=function):
            name = (
                function.attr
                if isinstance(function, ast.Attribute)
                else site.full_name(function).rpartition(".")[2]
            )
            shares = VIEWS.fullmatch(name) is not None
        case ast.Name() | ast.Attribute() | ast.Subscript():
            shares = True
        case _:
            return None
    return None if has_effects(side) else f"lambda: {site.source(side)}{'.clone()' if shares else ''}"
