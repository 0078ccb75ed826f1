"""Tensors that a loop hands to a function of its file, which adds them to what outlives the step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.rules.memory.patterns.accumulating import (
    Addition,
    Loop,
    is_made_within,
    is_trimmed,
    outlives,
    parts_of,
    step_loop,
)
from pyrometer.rules.memory.patterns.leaking import last_name
from pyrometer.rules.memory.patterns.sums import Added, added, summands
from pyrometer.source.attributes import is_static

if TYPE_CHECKING:
    from pyrometer.source.module import FunctionNode, Module

RESETTING = frozenset(["reset", "clear", "zero", "init", "start", "begin"])
"""Methods that let go of what an object has gathered."""


class Handed(NamedTuple):
    """A call in a loop of steps, as an addition of its arguments, and the statement in the function that adds them."""

    addition: Addition
    inner: ast.stmt | ast.Call


def handed(module: Module) -> Iterator[Handed]:
    """Every call in a loop of steps whose function keeps an argument as it is, or returns the sum with one."""
    for addition in added(module):
        function = module.function_of(addition.node)
        if addition.how == "store" or function is None or not _is_done_each_time(module, addition.node):
            continue
        names = _carried(function, addition)
        for call in module.heat.calls_of(function) if names else ():
            yield from _handed(module, call, function, addition, names)
    for node in module.nodes(ast.Return):
        function = module.function_of(node)
        if function is not None and isinstance(node.value, ast.BinOp) and len(_body(function)) == 1:
            for call in module.heat.calls_of(function):
                yield from _summed(module, call, function, node)


def _handed(
    module: Module, call: ast.Call, function: FunctionNode, one: Added, names: set[str]
) -> Iterator[Handed]:
    hot = module.hot(call)
    loop = step_loop(module, call)
    if hot is None or loop is None or module.is_rare(call) or module.region(call).test:
        return
    if not isinstance(module.parent(call), ast.Expr):  # what is returned may need the graph
        return
    target = _kept_in(module, call, function, one, loop)
    values = tuple(value for name in sorted(names) if (value := _argument(function, call, name)) is not None)
    if target is None or not values:
        return
    addition = Addition(call, target, values, one.how, hot, loop)
    if one.how == "sum" or not is_trimmed(module, addition):
        yield Handed(addition, one.node)


def _summed(module: Module, call: ast.Call, function: FunctionNode, node: ast.Return) -> Iterator[Handed]:
    """`total = add(total, loss)` where the function returns the sum of its arguments."""
    assignment, hot, loop = module.parent(call), module.hot(call), step_loop(module, call)
    if not isinstance(assignment, ast.Assign) or len(assignment.targets) != 1 or hot is None or loop is None:
        return
    target = assignment.targets[0]
    parts = [] if node.value is None else summands(node.value)
    arguments = [_argument(function, call, name) for part in parts for name in sorted(_names(part))]
    known = [argument for argument in arguments if argument is not None]
    values = tuple(inner for inner in known if ast.unparse(inner) != ast.unparse(target))
    if len(values) == len(known) - 1 and values and not (module.is_rare(call) or module.region(call).test):
        if _gradients_off(module, node) or not outlives(module, assignment, target, loop):
            return
        yield Handed(Addition(assignment, target, values, "sum", hot, loop), node)


def _kept_in(
    module: Module, call: ast.Call, function: FunctionNode, addition: Added, loop: Loop
) -> ast.expr | None:
    """What is added to, if it is the same in each step: of an object, of the caller or of the file."""
    base = addition.target
    while isinstance(base, ast.Subscript | ast.Attribute):
        base = base.value
    if not isinstance(base, ast.Name):
        return None
    name = last_name(addition.target) or ""
    if is_made_within(function, name, addition.node):
        return None
    positional = [*function.args.posonlyargs, *function.args.args]
    if module.class_of(function) is not None and positional and base.id == positional[0].arg:
        owner = call.func.value if isinstance(call.func, ast.Attribute) and not is_static(function) else None
        return addition.target if owner is not None and _stays(owner, loop) else None
    if not isinstance(addition.target, ast.Name | ast.Subscript):
        return None
    if base.id in {argument.arg for argument in positional}:
        argument = _argument(function, call, base.id) if addition.how == "append" else None
        return argument if argument is not None and outlives(module, call, argument, loop) else None
    lookup = module.scopes.lookup(base.id, addition.node)
    is_outer = lookup is not None and lookup[0] is not function
    return addition.target if is_outer and not is_made_within(loop, base.id, call) else None


def _stays(owner: ast.expr, loop: Loop) -> bool:
    """Whether a loop keeps an object as it is: it is not made, put into something or reset there."""
    name = last_name(owner)
    if name is None or is_made_within(loop, name, owner):
        return False
    return not any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and last_name(node.func.value) == name
        and any(word in node.func.attr for word in RESETTING)
        for node in ast.walk(loop)
    )


def _carried(function: FunctionNode, addition: Added) -> set[str]:
    """The parameters that are added with their graph: themselves, or times a number."""
    parameters = {argument.arg for argument in (*function.args.posonlyargs, *function.args.args)}
    names = {name for value in addition.values for part in parts_of(value) for name in _names(part)}
    return {name for name in names & parameters if not _is_changed(function, name)}


def _names(value: ast.expr) -> set[str]:
    if isinstance(value, ast.Name):
        return {value.id}
    if isinstance(value, ast.BinOp):
        return _names(value.left) | _names(value.right)
    return _names(value.operand) if isinstance(value, ast.UnaryOp) else set()


def _is_changed(function: FunctionNode, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        for node in ast.walk(function)
    )


def _is_done_each_time(module: Module, node: ast.stmt | ast.Call) -> bool:
    """Whether a function does a statement in every call, and with gradients on."""
    statement = module.statement_of(node)
    if not isinstance(module.parent(statement), ast.FunctionDef):
        return False
    return not (module.is_rare(node) or module.region(node).test or _gradients_off(module, node))


def _gradients_off(module: Module, node: ast.AST) -> bool:
    region = module.region(node)
    return region.no_grad or region.inference_mode


def _body(function: FunctionNode) -> list[ast.stmt]:
    """The statements of a function without its documentation."""
    first = function.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return function.body[1:] if is_text else function.body


def _argument(function: FunctionNode, call: ast.Call, name: str) -> ast.expr | None:
    """What a call passes for a parameter; nothing where it is not written out."""
    by_name = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    if by_name is not None or name not in names:
        return by_name
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    is_bound = isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"])
    position = names.index(name) - is_bound
    return call.args[position] if 0 <= position < len(call.args) else None
