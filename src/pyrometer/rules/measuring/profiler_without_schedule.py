"""A profiler records a whole run.

## What it does
Finds `torch.profiler.profile(...)` without `schedule=` around a loop over a loader, or around a loop of training steps
that no break and no small number of rounds ends.

## Why it costs
Every operator of every step is kept in memory until the profiler ends, and all of it is slower meanwhile. On two CPU cores 200 steps
of ten small layers, forward and backward, left a trace of 24 MB with 86,000 events; with
a schedule that records three of them it was 0.4 MB.

## Example
```python
import torch
from torch.utils.data import DataLoader


def train(model: torch.nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    with torch.profiler.profile() as prof:
        for x, y in loader:
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    prof.export_chrome_trace("trace.json")
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader


def train(model: torch.nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> None:
    schedule = torch.profiler.schedule(wait=5, warmup=2, active=3, repeat=1)
    with torch.profiler.profile(schedule=schedule) as prof:
        for x, y in loader:
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            prof.step()
    prof.export_chrome_trace("trace.json")
```

## Fix safety
Left to a person: which steps to record is a choice, and the loop must call `prof.step()`.

## References
- PyTorch documentation, torch.profiler: https://docs.pytorch.org/docs/stable/profiler.html
- PyTorch recipes, PyTorch Profiler: https://docs.pytorch.org/tutorials/recipes/recipes/profiler_recipe.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.match import Matches, match
from pyrometer.rules.measuring.patterns.profilers import profiled_blocks
from pyrometer.rules.measuring.patterns.timed_work import is_over_loader
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR004", severity="warning", fix_class="semantic")


@RULE.in_source
def find(module: Module) -> Matches:
    """Profilers around a whole loop of steps."""
    for block in profiled_blocks(module):
        if block.open_ended or block.argument("schedule") is not None:
            continue
        loop = next((one for one in block.loops(module) if _is_long(module, one)), None)
        if loop is not None:
            yield match(
                block.call,
                f"the profiler records every step of the loop in line {loop.lineno}",
                advice="Give it schedule=torch.profiler.schedule(wait=5, warmup=2, active=3, repeat=1), and call its step() at the end of "
                "each round.",
            )


def _is_long(module: Module, loop: ast.For | ast.While) -> bool:
    """Whether a loop runs over a loader, or does training steps, with nothing in it that ends it early."""
    inside = list(ast.walk(loop))
    if any(isinstance(node, ast.Break | ast.Return) for node in inside):
        return False
    if isinstance(loop, ast.For) and is_over_loader(module, loop):
        return not _is_cut(loop.iter)
    hot = module.hot(loop.body[0])
    return hot is not None and hot.loop is loop and hot.per == "step" and not _is_counted(module, loop)


def _is_counted(module: Module, loop: ast.For | ast.While) -> bool:
    """Whether a loop says its number of rounds; a constant one, or one that the caller gives, is meant to be profiled."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return False
    numbers = [module.literal(arg) for arg in loop.iter.args]
    return all(isinstance(number, int) and number <= 100 for number in numbers)


def _is_cut(iterated: ast.expr) -> bool:
    return any(
        (isinstance(node, ast.Name) and "islice" in node.id)
        or (isinstance(node, ast.Attribute) and node.attr == "islice")
        for node in ast.walk(iterated)
    )
