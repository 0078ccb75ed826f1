"""The lines that make samples and batches, as samples of the host's time show them where the training process loads itself."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pyrometer.rules.data.patterns.datasets import item_getters
from pyrometer.rules.data.patterns.loaders import loader_calls
from pyrometer.rules.joining import FunctionNode, Located, function_at
from pyrometer.rules.rule import Case, Module

if TYPE_CHECKING:
    from pyrometer.host.profile import HostLine

MOST_CALLS_DEEP = 4
LEAST_SHARE = 0.05
"""Of the step, of a line that is worth naming; with workers, what is left to the training process takes less."""

ONCE = (
    "It makes samples: do once, when the dataset is made, what gives the same for a sample each time, and keep the result; make the rest in workers "
    "(`num_workers` of the DataLoader), or for whole arrays."
)


def dearest_line(case: Case) -> HostLine | None:
    """The line with the most own time in the functions that make samples and batches; null where none was sampled."""
    if case.host is None:
        return None
    preparing, lines = _all_preparing(case), []
    for line in case.host.lines:
        function = function_at(line.where, case.modules)
        if function is not None and function[1] in preparing and line.own_s > 0:
            lines.append(line)
    dearest = max(lines, key=lambda line: line.own_s, default=None)
    return dearest if dearest is not None and case.host.share(dearest.own_s) >= LEAST_SHARE else None


def advice_on_samples(case: Case, where: Located) -> str | None:
    """What to do about work at a place that makes samples, of whatever kind it is; null at any other place."""
    function = function_at(where, case.modules)
    return ONCE if function is not None and function[1] in _all_preparing(case) else None


def _all_preparing(case: Case) -> set[FunctionNode]:
    preparing = {function for module in case.modules for function in _preparing(module)}
    if case.trace is not None:
        slow = function_at(case.trace.critical_path.loading, case.modules)
        preparing |= set() if slow is None else {slow[1]}
    return preparing


def _preparing(module: Module) -> set[FunctionNode]:
    """The functions of a file that get items or put them together, and those of the file that they call."""
    reached: set[FunctionNode] = set()
    newest: set[FunctionNode] = {function for _, function in item_getters(module)}
    for loader in loader_calls(module):
        collate = loader.argument("collate_fn")
        function = None if collate is None else module.classes.function_meant(collate)
        newest |= set() if function is None else {function}
    for _ in range(MOST_CALLS_DEEP):
        reached |= newest
        called = {
            module.classes.function_meant(node.func)
            for function in newest
            for node in ast.walk(function)
            if isinstance(node, ast.Call)
        }
        newest = {function for function in called if function is not None} - reached
    return reached
