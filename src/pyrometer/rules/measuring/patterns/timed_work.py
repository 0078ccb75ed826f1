"""What runs between two readings of a clock, as far as it matters to the time: models, training, waiting."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from pyrometer.rules.measuring.patterns.timed import Timing, calls_between, loops_between
from pyrometer.rules.rule import Module
from pyrometer.source.index import last_name
from pyrometer.source.value import Kind

WAITING_METHODS = frozenset(
    [
        "synchronize",
        "item",
        "tolist",
        "cpu",
        "numpy",
        "wait",
        "barrier",
        "block_until_ready",
        "nonzero",
        "equal",
        "allclose",
        "generate",
    ]
)
"""Methods that return only when a device has done its work, or may."""

WAITING_WORDS = ("sync", "barrier", "wait", "block_until")
"""Parts of names of functions that wait."""

READING = frozenset({"print", "float", "int", "bool", "str"})
"""Builtins that need the value of a tensor that they are given."""

VERB = re.compile(
    r"(prepare|get|load|build|make|create|wrap|init|setup|export|save|convert|compile|train|eval|fit|run|test)_"
)
"""How functions begin that are called after the model which they make or take, such as `load_model`."""

DEPTH = 2
"""Functions of the file that are followed, one calling the other."""


@dataclass
class Work:
    """What is between two readings.

    Attributes:
        model_calls: calls of modules.
        tensor_calls: other calls that compute a tensor, not on the CPU.
        trains: there is a backward pass or an optimizer's step.
        waits: something returns only when devices are done.
        unclear: a function from elsewhere is given a tensor, and may do anything.
        over_loader: there is a loop over a loader.
    """

    model_calls: list[ast.Call] = field(default_factory=list)
    tensor_calls: list[ast.Call] = field(default_factory=list)
    trains: bool = False
    waits: bool = False
    unclear: bool = False
    over_loader: bool = False

    @property
    def first(self) -> ast.Call | None:
        """Something that computes, a model first."""
        return next(iter([*self.model_calls, *self.tensor_calls]), None)


@lru_cache(maxsize=64)
def work_of(module: Module, timing: Timing) -> Work:
    """What runs between the two readings, also in functions of the same file that are called there."""
    work = Work()
    calls = list(calls_between(module, timing))
    _add(work, module, calls, depth=DEPTH)
    loops = [loop for loop in loops_between(module, timing) if isinstance(loop, ast.For)]
    work.over_loader = work.over_loader or any(is_over_loader(module, loop) for loop in loops)
    return work


def is_over_loader(module: Module, loop: ast.For) -> bool:
    """Whether a loop takes its items from a DataLoader, also through enumerate, tqdm or zip."""
    return any(
        module.value_of(part).kind is Kind.LOADER
        for part in ast.walk(loop.iter)
        if isinstance(part, ast.Name | ast.Attribute)
    )


def is_model_call(module: Module, call: ast.Call) -> bool:
    """Whether a call runs a module."""
    function = call.func
    if VERB.match(last_name(function) or ""):
        return False
    if isinstance(function, ast.Attribute) and function.attr == "forward":
        return module.value_of(function.value).kind is Kind.MODULE
    return module.value_of(function).kind is Kind.MODULE


def _add(work: Work, module: Module, calls: Iterable[ast.Call], depth: int) -> None:
    for call in calls:
        if _waits(module, call):
            work.waits = True
        elif is_model_call(module, call):
            work.model_calls.append(call)
        elif _is_training(module, call):
            work.trains = True
        elif (local := _local(module, call)) is not None:
            if depth:
                _add(work, module, _calls_of(local), depth - 1)
                work.over_loader |= any(
                    is_over_loader(module, loop) for loop in ast.walk(local) if isinstance(loop, ast.For)
                )
            else:
                work.unclear = True
        elif VERB.match(last_name(call.func) or ""):
            work.unclear = True
        elif (value := module.value_of(call)).is_tensor:
            if value.device != "cpu":
                work.tensor_calls.append(call)
        else:
            work.unclear |= _is_unclear(module, call)


def _waits(module: Module, call: ast.Call) -> bool:
    name = last_name(call.func) or ""
    if name in WAITING_METHODS or any(word in name.lower() for word in WAITING_WORDS):
        return True
    if name == "to" and any(isinstance(arg, ast.Constant) and arg.value == "cpu" for arg in call.args):
        return True
    if name == "step" and isinstance(call.func, ast.Attribute):
        return module.value_of(call.func.value).kind is Kind.SCALER
    return name in READING and any(_names_tensor(module, arg) for arg in call.args)


def _is_training(module: Module, call: ast.Call) -> bool:
    name = last_name(call.func) or ""
    if name == "backward":
        return True
    return (
        name == "step"
        and isinstance(call.func, ast.Attribute)
        and module.value_of(call.func.value).kind is Kind.OPTIMIZER
    )


def _local(module: Module, call: ast.Call) -> ast.FunctionDef | None:
    if not isinstance(call.func, ast.Name):
        return None
    return next(
        (
            function
            for function in module.nodes(ast.FunctionDef)
            if function.name == call.func.id and module.class_of(function) is None
        ),
        None,
    )


def _calls_of(function: ast.FunctionDef) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function) if isinstance(node, ast.Call))


def _is_unclear(module: Module, call: ast.Call) -> bool:
    name = module.name_of(call.func) or ""
    if name.startswith("torch.") or (
        isinstance(call.func, ast.Attribute) and _names_tensor(module, call.func.value)
    ):
        return False
    return any(module.value_of(arg).is_tensor for arg in call.args)


def _names_tensor(module: Module, expression: ast.expr) -> bool:
    return any(
        module.value_of(part).is_tensor
        for part in ast.walk(expression)
        if isinstance(part, ast.Name | ast.Attribute | ast.Call)
    )


def work_in_block(module: Module, block: ast.With) -> Work:
    """What the body of a `with` does; definitions in it do nothing yet."""
    work = Work()
    within = [node for statement in block.body for node in ast.walk(statement)]
    function = module.function_of(block)
    calls = [node for node in within if isinstance(node, ast.Call) and module.function_of(node) is function]
    _add(work, module, calls, depth=DEPTH)
    work.over_loader |= any(is_over_loader(module, loop) for loop in within if isinstance(loop, ast.For))
    return work


def work_in_lambda(module: Module, function: ast.Lambda) -> Work:
    """What a lambda does."""
    work = Work()
    _add(work, module, (node for node in ast.walk(function.body) if isinstance(node, ast.Call)), depth=DEPTH)
    return work
