"""Samples are put together element by element in Python.

## What it does
Finds collate functions that fill a tensor or array by nested Python loops, one number at a time, and reads the share of the
collate function in making a batch, where the loader was observed.

## Why it costs
Each assignment of one number to a tensor takes about a microsecond or more in Python, where a copy of a whole row takes about as
long in C. On two CPU cores, filling 64 rows of 128 numbers one by one took 20 ms, row by row 1.4 ms.

## Example
```python
import torch
from torch.utils.data import DataLoader


def collate(batch: list[list[float]]) -> torch.Tensor:
    out = torch.zeros(len(batch), 128)
    for i, row in enumerate(batch):
        for j, value in enumerate(row):
            out[i, j] = value
    return out


loader = DataLoader([[0.5] * 128] * 64, batch_size=64, collate_fn=collate)
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader


def collate(batch: list[list[float]]) -> torch.Tensor:
    out = torch.zeros(len(batch), 128)
    for i, row in enumerate(batch):
        out[i, : len(row)] = torch.tensor(row)
    return out


loader = DataLoader([[0.5] * 128] * 64, batch_size=64, collate_fn=collate)
```

## Fix safety
Left to a person: the same values, if the loop does nothing but copy.

## References
- PyTorch documentation, torch.utils.data, working with collate_fn: https://docs.pytorch.org/docs/stable/data.html
- PyTorch documentation, torch.nn.utils.rnn.pad_sequence: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html
"""

from __future__ import annotations

import ast

from pyrometer.advice import Gain
from pyrometer.place import Place
from pyrometer.quantity import format_percent, format_seconds
from pyrometer.rules.data.patterns.loaders import loader_calls
from pyrometer.rules.data.patterns.waiting import DATA, advised, facts, free_ratio, waiting_cost
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare

RULE = declare(
    code="PYR307",
    severity="warning",
    fix_class="semantic",
    limits=(
        Limit("min_collate_share", 0.3, "of making a batch; below it the samples themselves cost more"),
        Limit("min_wait_share", 0.1, "of the step; a collate function that nobody waits for costs nothing"),
    ),
)

MAKING = ("fetch", "decode", "collate")


@RULE.in_evidence("loading")
def explain(case: Case) -> Findings:
    """A collate function that takes much of the time that the step waits for."""
    report = case.loading
    findings = advised(RULE, case, "default-collate", "vectorise-collate")
    yield from findings
    if report is None or findings:
        return
    times = {stage.name: stage.per_step_s for stage in report.stages if stage.name in MAKING}
    whole_s, collate_s = sum(times.values()), times.get("collate", 0.0)
    if not whole_s or report.data_share < case.limit(RULE, "min_wait_share"):
        return
    share = collate_s / whole_s
    if share < case.limit(RULE, "min_collate_share"):
        return
    place = _collate_place(case)
    yield RULE.finding(
        message=f"collating samples takes {format_percent(share, 2)} of making a batch, "
        f"{format_seconds(collate_s)} per step",
        where=place,
        evidence={**facts(report, case), "collate_s": collate_s, "collate_share": share},
        links=["/loading/stages"],
        cost=waiting_cost(report, case),
        gain=Gain(
            ratio_low=1 - share * (1 - free_ratio(report, case)),
            ratio_high=1.0,
            method="bound: the wait falls by the collate function's share of making a batch, if that took no time",
        ),
        confidence="medium",
        advice=f"Put samples together by whole tensors{' in ' + place.function if place.function else ''}: torch.stack, pad_sequence, or "
        "rows assigned at once; give arrays instead of lists of numbers.",
        resource=DATA,
    )


@RULE.in_source
def find(module: Module) -> Matches:
    """Assignments of single elements in two nested loops of a collate function."""
    for function in _collate_functions(module):
        for statement in ast.walk(function):
            if isinstance(statement, ast.Assign) and (target := _element(module, statement)) is not None:
                yield match(
                    statement,
                    f"`{module.source(target)}` is filled one number at a time, in two loops of the collate function",
                    advice="Assign whole rows, out[i, : len(row)] = torch.as_tensor(row), or use torch.stack or pad_sequence.",
                    confidence="medium",
                )


def _collate_functions(module: Module) -> list[ast.FunctionDef]:
    """The functions of the file that a DataLoader is given as collate_fn."""
    names = {
        argument.id
        for call in loader_calls(module)
        if isinstance(argument := call.argument("collate_fn"), ast.Name)
    }
    return [function for function in module.nodes(ast.FunctionDef) if function.name in names]


def _element(module: Module, statement: ast.Assign) -> ast.Subscript | None:
    """The target of an assignment to one element, by variables of two loops around; slices are whole rows."""
    target = statement.targets[0]
    if not isinstance(target, ast.Subscript):
        return None
    indices: list[ast.expr] = []
    inner: ast.expr = target
    while isinstance(inner, ast.Subscript):
        indices += inner.slice.elts if isinstance(inner.slice, ast.Tuple) else [inner.slice]
        inner = inner.value
    loops = [loop for loop in module.loops_around(statement) if isinstance(loop, ast.For)]
    counters = [{node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)} for loop in loops]
    used = {index.id for index in indices if isinstance(index, ast.Name)}
    single = len(indices) >= 2 and not any(isinstance(index, ast.Slice) for index in indices)
    return target if single and sum(bool(used & names) for names in counters) >= 2 else None


def _collate_place(case: Case) -> Place:
    for module in case.modules:
        for function in _collate_functions(module):
            return Place(file=module.path, line=function.lineno, function=function.name)
    return Place()
