"""Regions that a program times by a clock of the host: two readings, and what runs between them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from pyrometer.rules.rule import Module

CLOCKS = (
    "time.time",
    "time.time_ns",
    "time.perf_counter",
    "time.perf_counter_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "timeit.default_timer",
)
_DEVICE = re.compile(r"(cuda|mps|xpu|npu)(:\d+)?")

Position = tuple[int, int]


class Timing(NamedTuple):
    """One difference of two readings.

    Attributes:
        start: the statement that reads the clock first.
        reading: the second reading.
        difference: the second minus the first.
        scope: the function around all of it; `None` at the top of the file.
    """

    start: ast.stmt
    reading: ast.Call
    difference: ast.BinOp
    scope: ast.AST | None

    def holds(self, node: ast.expr | ast.stmt) -> bool:
        """Whether a node of the same function stands between the two readings."""
        return _end(self.start) <= _begin(node) < _begin(self.reading)


@lru_cache(maxsize=4)
def timings(module: Module) -> tuple[Timing, ...]:
    """Every timed region of a file, in the order of the text."""
    return tuple(_timings(module))


@lru_cache(maxsize=4)
def speaks_of_devices(module: Module) -> bool:
    """Whether a file puts anything on a device: `.cuda()`, "cuda", torch.device("cuda:1")."""
    if any(True for _ in module.method_calls("cuda")):
        return True
    return any(
        isinstance(node.value, str) and _DEVICE.fullmatch(node.value) for node in module.nodes(ast.Constant)
    )


def calls_between(module: Module, timing: Timing) -> Iterator[ast.Call]:
    """The calls between the two readings, in order."""
    for call in module.nodes(ast.Call):
        if timing.holds(call) and module.function_of(call) is timing.scope:
            yield call


def loops_between(module: Module, timing: Timing) -> list[ast.For | ast.While]:
    """The loops that begin between the two readings."""
    loops: list[ast.For | ast.While] = [*module.nodes(ast.For), *module.nodes(ast.While)]
    return [loop for loop in loops if timing.holds(loop) and module.function_of(loop) is timing.scope]


def quoted(module: Module, timing: Timing) -> bool:
    """Whether the difference is printed or logged, directly or by the name that it is given."""
    if _is_shown(module, timing.difference):
        return True
    statement = module.statement_of(timing.difference)
    name = assigned_name(statement)
    if name is None:
        return False
    return any(
        _begin(use) > _end(statement) and _is_shown(module, use) for use in module.uses(name, timing.start)
    )


def assigned_name(statement: ast.stmt) -> str | None:
    """The name that a statement assigns to, where it is just one."""
    if isinstance(statement, ast.AnnAssign):
        return statement.target.id if isinstance(statement.target, ast.Name) else None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def _timings(module: Module) -> Iterator[Timing]:
    clocks = list(module.calls(*CLOCKS))
    if not clocks:
        return
    readings: dict[tuple[ast.AST | None, str], list[tuple[ast.stmt, ast.Call]]] = {}
    for call in clocks:
        statement = module.parent(call)
        if isinstance(statement, ast.Assign) and statement.value is call:
            for target in statement.targets:
                key = (module.function_of(call), ast.unparse(target))
                readings.setdefault(key, []).append((statement, call))
    known = set(clocks)
    for difference in module.nodes(ast.BinOp):
        if not isinstance(difference.op, ast.Sub) or not isinstance(
            difference.right, ast.Name | ast.Attribute
        ):
            continue
        scope = module.function_of(difference)
        second = _second(difference, known, readings, scope)
        starts = readings.get((scope, ast.unparse(difference.right)), [])
        before = [start for start, _ in starts if second is not None and _end(start) <= _begin(second)]
        if second is not None and before:
            yield Timing(before[-1], second, difference, scope)


def _second(
    difference: ast.BinOp,
    clocks: set[ast.Call],
    readings: dict[tuple[ast.AST | None, str], list[tuple[ast.stmt, ast.Call]]],
    scope: ast.AST | None,
) -> ast.Call | None:
    left = difference.left
    if isinstance(left, ast.Call):
        return left if left in clocks else None
    if not isinstance(left, ast.Name | ast.Attribute):
        return None
    before = [
        call
        for statement, call in readings.get((scope, ast.unparse(left)), [])
        if _end(statement) <= _begin(difference)
    ]
    return before[-1] if before else None


def _is_shown(module: Module, node: ast.AST) -> bool:
    for above in module.ancestors(node):
        if isinstance(above, ast.stmt):
            return False
        if isinstance(above, ast.Call) and _shows(above.func):
            return True
    return False


def _shows(function: ast.expr) -> bool:
    if isinstance(function, ast.Name):
        return function.id == "print"
    return isinstance(function, ast.Attribute) and function.attr in {
        "info",
        "warning",
        "debug",
        "echo",
        "log",
    }


def _begin(node: ast.expr | ast.stmt) -> Position:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt) -> Position:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
