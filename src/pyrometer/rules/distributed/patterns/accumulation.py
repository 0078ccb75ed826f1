"""Loops that accumulate gradients over several backward passes before the optimizer's step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from pyrometer.rules.rule import Module
from pyrometer.source.index import last_name
from pyrometer.source.value import Kind

Loop = ast.For | ast.AsyncFor | ast.While

OPTIMIZER = re.compile(r"(^|_)(optimizer|optim|opt)(_\w+)?$", re.IGNORECASE)
SCHEDULER = re.compile(r"(^|_)(scheduler|sched|lr_scheduler)(_\w+)?$", re.IGNORECASE)
SCALER = re.compile(r"(^|_)(scaler|grad_scaler)$", re.IGNORECASE)


class Accumulation(NamedTuple):
    """One loop over micro-batches."""

    loop: Loop
    backward: ast.Call
    step: ast.Call
    guard: ast.If | None
    """The `if` with a remainder that lets the step run every so many micro-batches; None where the step follows the loop."""


def accumulations(module: Module) -> Iterator[Accumulation]:
    """The accumulating loops of a file, by their backward pass.

    Either the step stands in the loop of the backward pass under an `if` with a remainder (`if (i + 1) % k == 0`), or it
    stands in the loop around that loop.
    """
    steps: dict[ast.AST | None, list[tuple[ast.Call, list[Loop]]]] = {}
    for call in module.method_calls("step"):
        if is_optimizer_step(module, call):
            steps.setdefault(module.function_of(call), []).append((call, module.loops_around(call)))
    for backward in module.method_calls("backward"):
        loops = module.loops_around(backward)
        if not loops or _remainder_above(module, backward, loops[0]) is not None:
            continue
        for step, around in steps.get(module.function_of(backward), ()):
            guard = _remainder_above(module, step, loops[0]) if around[:1] == loops[:1] else None
            follows = around[:1] == loops[1:2] and bool(around) and step.lineno > backward.lineno
            if guard is not None or (follows and _goes_over_micro_batches(module, loops[0])):
                yield Accumulation(loops[0], backward, step, guard)
                break


def is_optimizer_step(module: Module, call: ast.Call) -> bool:
    """Whether a call of `step` is of an optimizer, or of a GradScaler with one."""
    assert isinstance(call.func, ast.Attribute)
    receiver = call.func.value
    name = last_name(receiver) or ""
    if SCALER.search(name) and call.args:
        return True
    return module.value_of(receiver).kind is Kind.OPTIMIZER or (
        OPTIMIZER.search(name) is not None and SCHEDULER.search(name) is None
    )


def is_scheduler_step(call: ast.Call) -> bool:
    """Whether a call of `step` is of a learning-rate scheduler, by its name."""
    return (
        isinstance(call.func, ast.Attribute)
        and SCHEDULER.search(last_name(call.func.value) or "") is not None
    )


def _remainder_above(module: Module, node: ast.AST, loop: Loop) -> ast.If | None:
    """The `if` within a loop that lets a node run every so many rounds."""
    child = node
    for above in module.ancestors(node):
        if above is loop:
            return None
        if isinstance(above, ast.If) and child in above.body and _is_remainder(module, above.test):
            return above
        child = above
    return None


def _is_remainder(module: Module, test: ast.expr) -> bool:
    """Whether a test asks for a remainder, also through a name that is assigned once."""
    if isinstance(test, ast.Name):
        given = module.assignments(test.id, test)
        return len(given) == 1 and not isinstance(given[0], ast.Name) and _is_remainder(module, given[0])
    return any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mod) for part in ast.walk(test))


def _goes_over_micro_batches(module: Module, loop: Loop) -> bool:
    """Whether a loop says that it goes over parts of a batch, and not over all batches of an epoch."""
    return (
        isinstance(loop, ast.For)
        and re.search("accum|micro", module.source(loop.iter) + module.source(loop.target)) is not None
    )
