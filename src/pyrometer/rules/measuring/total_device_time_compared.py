"""Operators are ranked by total time, which counts nested ones twice.

## What it does
Finds tables and sorted lists of a profile ordered by `cpu_time_total`, `cuda_time_total` or `device_time_total`.

## Why it costs
The total of an operator holds that of every operator it calls: `aten::linear`, `aten::addmm` and the range around them all show the same
milliseconds. The head of such a list is the outermost ranges, not what takes the time, and its shares sum to more than one.

## Example
```python
import torch

with torch.profiler.profile() as prof:
    torch.nn.Linear(8, 8)(torch.randn(2, 8))
print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
```

## Use instead
```python
import torch

with torch.profiler.profile() as prof:
    torch.nn.Linear(8, 8)(torch.randn(2, 8))
print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
```

## Fix safety
The edit changes the order of the rows that are printed, and nothing that is computed; it is offered as a semantic fix, since the output
of the program differs.

## References
- PyTorch documentation, torch.profiler: https://docs.pytorch.org/docs/stable/profiler.html
- PyTorch recipes, PyTorch Profiler, self time and total time: https://docs.pytorch.org/tutorials/recipes/recipes/profiler_recipe.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.rule import Module, declare
from pyrometer.source.edit import replace

RULE = declare(code="PYR009", severity="info", fix_class="semantic")

TOTALS = frozenset({"cpu_time_total", "cuda_time_total", "device_time_total", "xpu_time_total"})
SORTERS = ("sorted", "max", "heapq.nlargest")


@RULE.in_source
def find(module: Module) -> Matches:
    """Tables and sorts by a total."""
    for call in module.method_calls("table"):
        key = module.keyword(call, "sort_by") or (call.args[0] if call.args else None)
        if isinstance(key, ast.Constant) and key.value in TOTALS:
            fix = Fix(
                fix_class="semantic",
                title=f'Sort by "self_{key.value}"',
                edits=[replace(module, key, f'"self_{key.value}"')],
            )
            yield match(key, _message(str(key.value)), advice=_advice(str(key.value)), fix=fix)
    for call in [*module.calls(*SORTERS), *module.method_calls("sort")]:
        if _of_averages(module, call) and (used := _total_in_key(module, call)) is not None:
            yield match(used, _message(used.attr), advice=_advice(used.attr))


def _total_in_key(module: Module, call: ast.Call) -> ast.Attribute | None:
    key = module.keyword(call, "key")
    if not isinstance(key, ast.Lambda):
        return None
    return next(
        (node for node in ast.walk(key.body) if isinstance(node, ast.Attribute) and node.attr in TOTALS), None
    )


def _of_averages(module: Module, call: ast.Call) -> bool:
    """Whether it is the averages by name that are sorted: of single events the total may be what is asked for."""
    sorted_things = [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    for thing in sorted_things:
        values = [thing, *(module.assignments(thing.id, thing) if isinstance(thing, ast.Name) else [])]
        if any(
            isinstance(node, ast.Attribute) and node.attr == "key_averages"
            for value in values
            for node in ast.walk(value)
        ):
            return True
    return False


def _message(key: str) -> str:
    return f"{key} counts the time of nested operators again in each operator around them"


def _advice(key: str) -> str:
    return f"Sort by self_{key}: the time of the operator itself."
