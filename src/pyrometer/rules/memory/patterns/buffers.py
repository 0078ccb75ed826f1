"""Buffers that a loop makes anew: results that grow piece by piece, and constants of one size."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import NamedTuple

from pyrometer.rules.memory.patterns.accumulating import is_made_within
from pyrometer.rules.memory.patterns.leaking import last_name
from pyrometer.rules.rule import Module

JOINING = (
    "torch.cat",
    "torch.concat",
    "torch.concatenate",
    "torch.stack",
    "torch.hstack",
    "torch.vstack",
    "torch.row_stack",
    "torch.dstack",
)
FACTORIES = (
    "torch.zeros",
    "torch.ones",
    "torch.empty",
    "torch.full",
    "torch.arange",
    "torch.linspace",
    "torch.eye",
)
"""Makers of tensors whose values do not change from step to step; random ones do."""

STORES = ("append", "add", "put", "extend", "insert", "appendleft", "register_buffer")


class Grown(NamedTuple):
    """A result that is copied into a larger one with every piece."""

    call: ast.Call
    name: str
    pieces: str
    """What is added, as it is written."""
    loop: ast.For | ast.AsyncFor | ast.While


def grown(module: Module) -> Iterator[Grown]:
    """`out = torch.cat([out, piece])` in a loop that does nothing else with `out`."""
    for call in module.calls(*JOINING):
        loops = module.loops_around(call)
        statement = module.statement_of(call)
        parts = call.args[0].elts if call.args and isinstance(call.args[0], ast.List | ast.Tuple) else []
        if (
            not loops
            or not isinstance(statement, ast.Assign)
            or len(statement.targets) != 1
            or len(parts) < 2
        ):
            continue
        target = statement.targets[0]
        own = [part for part in parts if ast.unparse(part) == ast.unparse(target)]
        begins_anew = is_made_within(loops[0], last_name(target) or "", statement)
        if len(own) == 1 and not begins_anew and not _is_read(module, target, loops[0], call):
            pieces = ", ".join(module.source(part) for part in parts if part is not own[0])
            yield Grown(call, module.source(target), pieces, loops[0])


def constants(module: Module) -> Iterator[tuple[ast.Call, int]]:
    """Calls that make a tensor of one size that stays within the step, with its number of elements."""
    for call in module.calls(*FACTORIES):
        elements = _num_elements(module, call)
        if (
            elements is not None
            and module.keyword(call, "requires_grad") is None
            and not _leaves(module, call)
        ):
            yield call, elements


def _is_read(module: Module, target: ast.expr, loop: ast.AST, call: ast.Call) -> bool:
    """Whether a loop uses what it grows otherwise than to grow it, or to see whether it has begun."""
    name = last_name(target)
    within_call = set(map(id, ast.walk(call)))
    for node in ast.walk(loop):
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if last_name(node) != name or id(node) in within_call:
            continue
        above = module.parent(node)
        if not (
            isinstance(above, ast.Compare) and all(isinstance(op, ast.Is | ast.IsNot) for op in above.ops)
        ):
            return True
    return False


def _num_elements(module: Module, call: ast.Call) -> int | None:
    """The number of elements where every size is a constant of the file."""
    name = (module.name_of(call.func) or "").rpartition(".")[2]
    sizes = call.args or ([size] if (size := module.keyword(call, "size")) is not None else [])
    if name == "full":
        sizes = sizes[:1]
    elif name == "linspace":
        sizes = sizes[2:3] or [steps for steps in [module.keyword(call, "steps")] if steps is not None]
    found = [_integers(module, size) for size in sizes]
    if not found or any(one is None for one in found):
        return None
    numbers = [number for one in found if one is not None for number in one]
    if name == "arange":
        begin, end, step = (0, *numbers, 1) if len(numbers) == 1 else (*numbers, 1)[:3]
        return len(range(begin, end, step)) if step else None
    if name == "eye":
        return numbers[0] * numbers[-1]
    return math.prod(numbers)


def _integers(module: Module, size: ast.expr) -> list[int] | None:
    literal = module.literal(size)
    numbers = [
        one for one in (literal if isinstance(literal, tuple | list) else [literal]) if type(one) is int
    ]
    return numbers if len(numbers) == (len(literal) if isinstance(literal, tuple | list) else 1) else None


def _leaves(module: Module, call: ast.Call) -> bool:
    """Whether a new tensor may be kept beyond the step, so that each step needs its own."""
    statement = module.statement_of(call)
    if isinstance(statement, ast.Return) or _is_stored(module, call):
        return True
    if not isinstance(statement, ast.Assign) or statement.value is not call:
        return not isinstance(statement, ast.Expr | ast.Assign | ast.AugAssign)
    names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
    if len(names) != len(statement.targets):
        return True
    return any(_is_kept(module, use) for name in names for use in module.uses(name, call))


def _is_kept(module: Module, use: ast.Name) -> bool:
    """Whether a use hands the very tensor on: returns it, stores it, or gives it another name."""
    parent = module.parent(use)
    if isinstance(
        parent,
        ast.Return | ast.Yield | ast.Tuple | ast.List | ast.Dict | ast.Starred | ast.keyword | ast.Lambda,
    ):
        return True
    if isinstance(parent, ast.Assign | ast.AnnAssign) and parent.value is use:
        return True
    return _is_stored(module, use) or module.function_of(use) is None


def _is_stored(module: Module, node: ast.expr) -> bool:
    parent = module.parent(node)
    if isinstance(parent, ast.Call) and node in parent.args:
        return isinstance(parent.func, ast.Attribute) and parent.func.attr in STORES
    return False
