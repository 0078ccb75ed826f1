"""One value or another, decided by a tensor: as `torch.where`, or as `torch.cond`."""

from __future__ import annotations

import ast
from typing import NamedTuple

from pyrometer.compiler.advice.expressions import elementwise, has_effects, is_number, pointwise_of
from pyrometer.compiler.advice.flow import ARITHMETIC, Flow
from pyrometer.compiler.advice.site import Site


class Choice(NamedTuple):
    """The text of a choice, and whether `torch.where` makes it."""

    text: str
    by_where: bool


def decide(site: Site, condition: str, one: ast.expr, other: ast.expr) -> Choice | None:
    """The choice between two expressions; `None` where neither way is certain to mean the same.

    One side at least must show that it is a tensor: a choice of numbers would become a tensor too, and may be needed as a
    number. `torch.where` needs both sides elementwise over the same names, so that shape, dtype and gradients agree for certain.
    `torch.cond` needs as much of shapes and dtypes, and refuses others with an error: both sides must be elementwise over one
    name. It takes no result that is an input.
    """
    flow = Flow(site)
    if site.torch is None or _counts(flow, one, other) or not any(map(flow.is_tensor, (one, other))):
        return None
    forms = elementwise(site, one), elementwise(site, other)
    if forms[0] and forms[0].names and forms[0] == forms[1]:
        return Choice(
            f"{site.torch}.where({condition}, {site.source(one)}, {site.source(other)})", by_where=True
        )
    if not _alike(site, one, other):
        return None
    branches = [_branch(site, side) for side in (one, other)]
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


def _alike(site: Site, one: ast.expr, other: ast.expr) -> bool:
    """Whether both sides surely give tensors of one shape, dtype and layout: elementwise over one and the same name."""
    forms = pointwise_of(site, one), pointwise_of(site, other)
    return forms[0] is not None and forms[0] == forms[1] and len(forms[0].names) == 1


def _branch(site: Site, side: ast.expr) -> str:
    """A branch for `torch.cond`: a function that gives a new tensor."""
    copy = ".clone()" if isinstance(side, ast.Name | ast.Attribute) else ""
    return f"lambda: {site.source(side)}{copy}"
