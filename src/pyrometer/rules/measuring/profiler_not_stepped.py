"""A profiler has a schedule, but `step()` is never called.

## What it does
Finds `torch.profiler.profile(schedule=...)` whose block neither calls `step()` of it nor hands it on.

## Why it costs
The schedule counts calls of `step()`. Without them it stays at its first step: with `wait=1` or more nothing is recorded, with `wait=0,
warmup=0` everything is. The run was for nothing, or costs as much as without a schedule.

## Example
```python
import torch

schedule = torch.profiler.schedule(wait=1, warmup=1, active=3)
model = torch.nn.Linear(8, 8)
with torch.profiler.profile(schedule=schedule) as prof:
    for _ in range(5):
        model(torch.randn(2, 8))
```

## Use instead
```python
import torch

schedule = torch.profiler.schedule(wait=1, warmup=1, active=3)
model = torch.nn.Linear(8, 8)
with torch.profiler.profile(schedule=schedule) as prof:
    for _ in range(5):
        model(torch.randn(2, 8))
        prof.step()
```

## Fix safety
Left to a person: the call belongs at the end of whatever counts as a step.

## References
- PyTorch documentation, torch.profiler: https://docs.pytorch.org/docs/stable/profiler.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.match import Matches, match
from pyrometer.rules.measuring.patterns.profilers import ProfiledBlock, profiled_blocks
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR013", severity="warning", fix_class="semantic")


@RULE.in_source
def find(module: Module) -> Matches:
    """Scheduled profilers whose `step` nobody can call."""
    for block in profiled_blocks(module):
        schedule = block.argument("schedule")
        if schedule is None or module.literal(schedule) is None or _may_step(block):
            continue
        yield match(
            block.call,
            "the profiler has a schedule, but nothing calls its step(), so that it stays at its first step",
            advice=f"Call {block.name or 'prof'}.step() at the end of each round of the loop within.",
        )


def _may_step(block: ProfiledBlock) -> bool:
    """Whether the profiler's `step` is called, or its name is used in another way than by a method of it."""
    for node in ast.walk(ast.Module(body=block.block.body, type_ignores=[])):
        if isinstance(node, ast.Attribute) and node.attr == "step" and _is(node.value, block.name):
            return True
        if isinstance(node, ast.Call) and any(
            _is(arg, block.name) for arg in [*node.args, *(keyword.value for keyword in node.keywords)]
        ):
            return True
        if (
            isinstance(node, ast.Assign | ast.Return)
            and node.value is not None
            and _is(node.value, block.name)
        ):
            return True
    return False


def _is(node: ast.expr, name: str | None) -> bool:
    return name is not None and isinstance(node, ast.Name) and node.id == name
