"""Context managers of a file that read a clock before and after what is done in their `with` blocks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from pyrometer.rules.measuring.patterns.timed import CLOCKS, timings
from pyrometer.rules.rule import Module

MANAGERS = ("contextlib.contextmanager", "contextlib.asynccontextmanager")


class Timer(NamedTuple):
    """A context manager that times, and calls nothing before its second reading that could wait for a device."""

    name: str
    reading: ast.Call
    uses: tuple[ast.With, ...]
    """The blocks that it is around, nearest to the beginning of the file first."""


def timers(module: Module) -> Iterator[Timer]:
    """The timers among a file's generators with @contextmanager, and among its classes with `__enter__`."""
    for timing in timings(module):
        function = timing.scope
        if not isinstance(function, ast.FunctionDef) or not _is_manager(module, function):
            continue
        pauses = [node for node in ast.walk(function) if isinstance(node, ast.Yield) and timing.holds(node)]
        if pauses and not _calls_before(module, timing.reading, pauses[-1]):
            yield Timer(function.name, timing.reading, _uses(module, function.name))
    yield from _classes(module)


def _classes(module: Module) -> Iterator[Timer]:
    """Classes whose `__enter__` keeps a reading in an attribute from which `__exit__` takes the difference."""
    clocks = list(module.calls(*CLOCKS))
    methods = {(module.class_of(clock), getattr(module.function_of(clock), "name", "")) for clock in clocks}
    for clock in clocks:
        owner, leaving = module.class_of(clock), module.function_of(clock)
        if (
            owner is None
            or leaving is None
            or leaving.name != "__exit__"
            or (owner, "__enter__") not in methods
        ):
            continue
        first = next(call for call in clocks if module.function_of(call) is leaving)
        if clock is first and not _calls_before(module, clock, leaving.body[0]):
            yield Timer(owner.name, clock, _uses(module, owner.name))


def _is_manager(module: Module, function: ast.FunctionDef) -> bool:
    return any(module.name_of(node) in MANAGERS for node in function.decorator_list)


def _calls_before(module: Module, reading: ast.Call, first: ast.AST) -> bool:
    """Whether anything is called between a place of a function and the reading: it may wait for the device."""
    around = set(module.ancestors(reading))
    begin = (getattr(first, "lineno", 0), getattr(first, "col_offset", 0))
    end = (reading.lineno, reading.col_offset)
    function = module.function_of(reading)
    return any(
        begin <= (call.lineno, call.col_offset) < end and call not in around
        for call in module.nodes(ast.Call)
        if module.function_of(call) is function
    )


def _uses(module: Module, name: str) -> tuple[ast.With, ...]:
    """The `with` blocks of calls by this plain name; of `self.timer(...)` too, where a method has it."""
    return tuple(
        block
        for block in module.nodes(ast.With)
        if any(
            isinstance(item.context_expr, ast.Call) and _called(item.context_expr.func) == name
            for item in block.items
        )
    )


def _called(function: ast.expr) -> str | None:
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.attr if function.value.id in ("self", "cls") else None
    return function.id if isinstance(function, ast.Name) else None
