"""Decisions on tensor values: `if`, conditional expressions, `assert` and `raise`."""

from __future__ import annotations

import ast

import msgspec

from pyrometer.advice import Advice, titled
from pyrometer.compiler.advice.choice import Choice, decide, name_and_value
from pyrometer.compiler.advice.expressions import bracketed, kept_as_tensor, shows_tensor, truth
from pyrometer.compiler.advice.flow import Flow
from pyrometer.compiler.advice.registry import advises
from pyrometer.compiler.advice.site import Site

TESTS = frozenset({"gb0170", "gb0035"})
"""Ids that say that the test itself is a tensor."""

WORDS = titled(
    "decide in the graph",
    why="The test needs a tensor's value, so the graph ends there. Where both sides give tensors of one shape and dtype, "
    "`torch.where(condition, a, b)` or `torch.cond(condition, f, g, operands)` decides within the graph; a decision that "
    "does not change from call to call belongs in a Python argument or attribute.",
    fix_class="tolerance",
)
WHERE = titled(
    "select with torch.where",
    why="The test needs a tensor's value, so the graph ends there. Both sides are elementwise and of one shape: torch.where "
    "computes both and selects in the graph.",
    fix_class="exact",
)
COND = titled(
    "branch with torch.cond",
    why="The test needs a tensor's value, so the graph ends there. Both sides are elementwise over one tensor, so "
    "that shape and dtype agree: torch.cond keeps both branches in the graph and runs the chosen one.",
    fix_class="exact",
)
ASSERT = titled(
    "assert on the tensor itself",
    why="An assertion on a boolean tensor with a constant text is part of the graph. Where it fails it raises RuntimeError in "
    "compiled code, AssertionError elsewhere.",
    fix_class="semantic",
)


@advises("gb0170", "gb0035", "gb0124", "gb0033")
def data_dependent_if(site: Site) -> list[Advice]:
    """`torch.where` for elementwise sides of one shape, `torch.cond` for others."""
    statement = site.statement
    if isinstance(statement, ast.If):
        advice = _if(site, statement)
    elif isinstance(statement, ast.Return | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr):
        advice = _conditional_expression(site, statement)
    else:
        return []
    decides = site.found.id in TESTS and not _raises(statement)
    return advice or ([WORDS] if decides else [])


@advises("gb0170", "gb0035", "gb0034", "gb0171", "gb0124", "gb0033")
def data_dependent_assert(site: Site) -> list[Advice]:
    """An `assert` on a boolean tensor with a constant text stays in the graph; other forms of it do not."""
    match site.statement:
        case ast.Assert(test=test, msg=ast.expr() as told):
            condition = _certain(site, test)
        case ast.If(test=test, body=[ast.Raise(exc=ast.expr() as told)], orelse=[]):
            inner = _certain(site, test)
            condition = None if inner is None else f"~{bracketed(inner)}"
        case _:
            return []
    text = _constant_text(told)
    caught = any(isinstance(node, ast.Try) for node in site.parents)
    if condition is None or text is None or caught:
        return []
    return site.replaced(
        site.statement,
        f"assert {condition}, {text!r}",
        ASSERT,
    )


def decided(site: Site, statement: ast.If, condition: str) -> list[Advice]:
    """An `if` that assigns or returns values, rewritten with the truth of its test given as text."""
    returned = _returned(site, statement)
    if returned is not None:
        one, other, last = returned
        value = decide(site, condition, one, other)
        if value is None:
            return []
        return site.replaced(statement, f"return {value.text}", _about(site, value), last)
    pairs = _assigned(site, statement)
    values = [decide(site, condition, one, other) for _, one, other in pairs]
    known = [value for value in values if value is not None]
    if (
        not known
        or len(known) < len(values)
        or (len(known) > 1 and not all(value.by_where for value in known))
    ):
        return []
    if len(known) == 1:
        return site.replaced(statement, f"{pairs[0][0]} = {known[0].text}", _about(site, known[0]))
    name = site.unused_name("condition")
    values = [decide(site, name, one, other) for _, one, other in pairs]
    lines = [f"{target} = {value.text}" for (target, _, _), value in zip(pairs, values, strict=True) if value]
    return site.replaced(statement, "\n".join([f"{name} = {condition}", *lines]), _about(site, known[0]))


def _if(site: Site, statement: ast.If) -> list[Advice]:
    condition = None if site.is_elif(statement) else _certain(site, statement.test)
    return [] if condition is None else decided(site, statement, condition)


def _certain(site: Site, test: ast.expr) -> str | None:
    """The truth of a test as a tensor, where the break or the text says that it is one."""
    said = site.found.id in TESTS or shows_tensor(site, kept_as_tensor(site, test))
    return truth(site, test) if said else None


def _conditional_expression(site: Site, statement: ast.stmt) -> list[Advice]:
    """`a if test else b` inside a statement, when it is the only one there."""
    inside = [node for node in site.nodes if isinstance(node, ast.IfExp)]
    if len(inside) != 1:
        return []
    node = inside[0]
    condition = _certain(site, node.test)
    value = None if condition is None else decide(site, condition, node.body, node.orelse)
    return [] if value is None else site.edited(statement, [(node, value.text)], _about(site, value))


def _returned(site: Site, statement: ast.If) -> tuple[ast.expr, ast.expr, ast.stmt] | None:
    """What both sides return, and the last statement of it: the `if`, or the `return` behind it."""
    block, place = site.siblings(statement)
    match statement.body, statement.orelse, block[place + 1 : place + 2]:
        case [ast.Return(value=ast.expr() as one)], [ast.Return(value=ast.expr() as other)], _:
            return one, other, statement
        case [ast.Return(value=ast.expr() as one)], [], [ast.Return(value=ast.expr() as other) as last]:
            return one, other, last
    return None


def _assigned(site: Site, statement: ast.If) -> list[tuple[str, ast.expr, ast.expr]]:
    """Each name that the sides assign with its two values; empty if they do anything else, or in another order."""
    flow = Flow(site)
    sides = [[name_and_value(flow, each) for each in side] for side in (statement.body, statement.orelse)]
    if any(pair is None for side in sides for pair in side):
        return []
    one, other = ([pair for pair in side if pair is not None] for side in sides)
    names = [name for name, _ in one]
    if len(set(names)) < len(names) or (other and [name for name, _ in other] != names):
        return []
    if not other:  # the value from before stands
        if not all(flow.is_bound(name, statement.lineno) for name in names):
            return []
        other = [(name, ast.Name(name, ast.Load())) for name in names]
    return [(name, value, new) for (name, value), (_, new) in zip(one, other, strict=True)]


def _raises(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and any(isinstance(each, ast.Raise) for each in statement.body)


def _constant_text(node: ast.expr) -> str | None:
    """The text of a message, or of an exception made with nothing else."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Call(func=ast.Name(), args=[ast.Constant(value=str() as text)], keywords=[]):
            return text
    return None


def _about(site: Site, value: Choice) -> Advice:
    """Where the test took a number out of a tensor, it now compares as tensors do: a constant is rounded to their dtype."""
    about = WHERE if value.by_where else COND
    return msgspec.structs.replace(about, fix_class="tolerance") if site.found.id == "gb0124" else about
