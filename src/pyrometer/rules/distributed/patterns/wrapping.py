"""DistributedDataParallel, as source text makes it and as a program holds it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.rules.rule import Case, Module
from pyrometer.source.rewriting import Rewrite, rewritten, with_keywords

if TYPE_CHECKING:
    from pyrometer.workload.program.record import Program, Wrapper

DATA_PARALLEL = (
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.data_parallel.DataParallel",
)
DISTRIBUTED = (
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
)
BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


def wrappings(module: Module) -> Iterator[ast.Call]:
    """Calls that make a DistributedDataParallel, outside of tests."""
    return (call for call in module.calls(*DISTRIBUTED) if not module.region(call).test)


def is_set(module: Module, call: ast.Call, name: str) -> bool:
    """Whether a keyword is the constant True."""
    given = module.keyword(call, name)
    return given is not None and module.literal(given) is True


def distributed_wrappers(case: Case) -> list[tuple[int, Wrapper]]:
    """The DistributedDataParallel modules of a program, with their numbers in its record."""
    wrappers = case.program.wrappers if case.program is not None else []
    return [
        (index, wrapper)
        for index, wrapper in enumerate(wrappers)
        if wrapper.type_name == "DistributedDataParallel"
    ]


def rewrapped(case: Case, **keywords: bool) -> Rewrite | str:
    """The call that wraps the model with these arguments, if the sources show just one; else the arguments alone."""
    calls = [(module, call) for module in case.modules for call in wrappings(module)]
    given = {name: str(value) for name, value in keywords.items()}
    alone = ", ".join(f"{name}={value}" for name, value in given.items())
    if len(calls) != 1:
        return alone
    module, call = calls[0]
    return rewritten(module, with_keywords(module, call, given)) or alone


def gradient_bytes(program: Program) -> int:
    """Bytes of all gradients: the trainable parameters in their mean element size."""
    total = sum(program.parameter_dtypes.values())
    size = sum(BYTES.get(name, 4) * count for name, count in program.parameter_dtypes.items())
    return round(program.trainable_parameters * size / total) if total else 0
