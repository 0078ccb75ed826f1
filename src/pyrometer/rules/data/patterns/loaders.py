"""DataLoaders in source text: where they are made, with which arguments, and who iterates over them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from pyrometer.rules.rule import Module
from pyrometer.source.edit import Edit
from pyrometer.source.rewriting import add_argument
from pyrometer.source.value import Kind

NAMES = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
POSITIONS = (
    "dataset",
    "batch_size",
    "shuffle",
    "sampler",
    "batch_sampler",
    "num_workers",
    "collate_fn",
    "pin_memory",
    "drop_last",
)
"""Arguments of DataLoader in their order."""

EPOCHS = re.compile(r"epoch", re.IGNORECASE)
_DEVICE = re.compile(r"cuda(:\d+)?")
MISSING_ARGUMENT = object()


class LoaderCall(NamedTuple):
    """One `DataLoader(...)`.

    Attributes:
        module: the file.
        call: that makes it.
    """

    module: Module
    call: ast.Call

    @property
    def is_complete(self) -> bool:
        """Whether the text shows all of its arguments."""
        return all(keyword.arg for keyword in self.call.keywords) and not any(
            isinstance(arg, ast.Starred) for arg in self.call.args
        )

    def argument(self, name: str) -> ast.expr | None:
        """An argument, by keyword or place."""
        given = self.module.keyword(self.call, name)
        place = POSITIONS.index(name) if name in POSITIONS else len(self.call.args)
        return given if given is not None or place >= len(self.call.args) else self.call.args[place]

    def value(self, name: str) -> object:
        """The constant that an argument is; `MISSING_ARGUMENT` where it is not given."""
        given = self.argument(name)
        return MISSING_ARGUMENT if given is None else self.module.literal(given)

    @property
    def name(self) -> str | None:
        """The variable that holds it."""
        statement = self.module.parent(self.call)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
        return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else None

    @property
    def has_workers(self) -> bool | None:
        """Whether there are workers; `None` where the text does not tell."""
        number = self.value("num_workers")
        if number is MISSING_ARGUMENT or number == 0:
            return False
        return True if isinstance(number, int) else None

    def with_keyword(self, text: str) -> list[Edit]:
        """Edits that add an argument as the last one."""
        return add_argument(self.module, self.call, text)


@lru_cache(maxsize=4)
def loader_calls(module: Module) -> tuple[LoaderCall, ...]:
    """Every DataLoader that a file makes, apart from tests."""
    return tuple(LoaderCall(module, call) for call in module.calls(*NAMES) if not module.region(call).test)


def stepping_loader(modules: Iterable[Module]) -> LoaderCall | None:
    """The loader that the steps draw from; None where the text does not single one out.

    Of several it is the one with a backward pass in the loop over it, else the one that is not drawn from without gradients,
    else the one that shuffles.
    """
    calls = [call for module in modules for call in loader_calls(module)]
    for steps in (_has_backward, _records_gradients, _shuffles):
        calls = [call for call in calls if steps(call)] or calls
    return calls[0] if len(calls) == 1 else None


def _has_backward(call: LoaderCall) -> bool:
    inside = {part for loop in loops_over(call) for part in ast.walk(loop)}
    return any(backward in inside for backward in call.module.method_calls("backward"))


def _records_gradients(call: LoaderCall) -> bool:
    regions = [call.module.region(loop) for loop in loops_over(call)]
    return any(not (region.no_grad or region.inference_mode) for region in regions)


def _shuffles(call: LoaderCall) -> bool:
    return call.value("shuffle") is True


def loops_over(call: LoaderCall) -> list[ast.For]:
    """The loops over a loader, through `enumerate`, `tqdm` and the like: where its name is known, and in functions that it is given to."""
    if call.name is None:
        return []
    uses = call.module.uses(call.name, call.call)
    return [loop for use in uses for loop in _loops_of(call.module, use)]


def _loops_of(module: Module, use: ast.Name) -> list[ast.For]:
    """The loops over what a name holds, from one place that reads it."""
    given = _parameter(module, use)
    loops = module.nodes(ast.For)
    if given is None:
        return [loop for loop in loops if use in set(ast.walk(loop.iter))]
    function, name = given
    return [
        loop
        for loop in loops
        if module.function_of(loop) is function
        and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(loop.iter))
    ]


def _parameter(module: Module, use: ast.Name) -> tuple[ast.FunctionDef, str] | None:
    """The function of this file that a name is an argument of, and what it is called there."""
    keyword = module.parent(use)
    call = module.parent(keyword) if isinstance(keyword, ast.keyword) else keyword
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return None
    for function in module.nodes(ast.FunctionDef):
        if function.name != call.func.id:
            continue
        if isinstance(keyword, ast.keyword):
            return None if keyword.arg is None else (function, keyword.arg)
        names = [argument.arg for argument in [*function.args.posonlyargs, *function.args.args]]
        place = next((i for i, arg in enumerate(call.args[: len(names)]) if arg is use), None)
        return None if place is None else (function, names[place])
    return None


def is_epoch_loop(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether a loop counts epochs: its variable or its range says so."""
    if not isinstance(loop, ast.For):
        return False
    return bool(EPOCHS.search(ast.unparse(loop.target)) or EPOCHS.search(ast.unparse(loop.iter)))


def repeated_in_epochs(call: LoaderCall) -> ast.For | None:
    """The loop of epochs in which a loader is used again and again, directly or by a function that it is given to."""
    module = call.module
    if call.name is None:
        return None
    here = module.loops_around(call.call)
    for use in module.uses(call.name, call.call):
        if not _loops_of(module, use):
            continue
        for loop in module.loops_around(module.statement_of(use)):
            if isinstance(loop, ast.For) and loop not in here and is_epoch_loop(loop):
                return loop
    return None


def starts_anew(call: LoaderCall) -> bool:
    """Whether a loop over epochs starts the workers of a loader, if it has any, again and again."""
    is_kept = call.value("persistent_workers") not in (MISSING_ARGUMENT, False)
    return call.is_complete and not is_kept and repeated_in_epochs(call) is not None


def moves_to_cuda(module: Module, loop: ast.For) -> ast.Call | None:
    """The call in a loop over batches that copies one of them to a device, where the file speaks of CUDA."""
    if not speaks_of_cuda(module):
        return None
    batch = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
    for call in module.method_calls("cuda", "to"):
        if loop not in module.ancestors(call) or not isinstance(call.func, ast.Attribute):
            continue
        names = {node.id for node in ast.walk(call.func.value) if isinstance(node, ast.Name)}
        if names & batch and (call.func.attr == "cuda" or _is_device(call)):
            return call
    return None


def speaks_of_cuda(module: Module) -> bool:
    """Whether a file puts anything on a CUDA device."""
    if any(True for _ in module.method_calls("cuda")):
        return True
    return any(
        isinstance(node.value, str) and _DEVICE.fullmatch(node.value) for node in module.nodes(ast.Constant)
    )


def trains(module: Module) -> bool:
    """Whether a file trains: it has a backward pass, or a class with a training step."""
    if any(True for _ in module.method_calls("backward")):
        return True
    return any(function.name == "training_step" for function in module.nodes(ast.FunctionDef))


def is_loader(module: Module, expression: ast.expr) -> bool:
    """Whether an expression is a DataLoader."""
    return module.value_of(expression).kind is Kind.LOADER


def _is_device(call: ast.Call) -> bool:
    """Whether `.to(...)` names a device: a string, something called so, or by keyword."""
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device")]
    for node in given:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str) and bool(_DEVICE.fullmatch(node.value))
        word = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if "device" in word.lower() or word in {"rank", "local_rank", "gpu"}:
            return True
    return False
