"""A loader or its iterator is created in every iteration of a loop.

## What it does
Finds `next(iter(loader))` in a loop that does not make the loader, and a DataLoader with workers that is made in every epoch from
arguments that do not change.

## Why it costs
`iter(loader)` starts the workers and draws a new order of the whole dataset; they prepare `num_workers × prefetch_factor` batches, of
which one is used. Without shuffling it gives the same first batch every time.

## Example
```python
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(8, 1)
loader = DataLoader(TensorDataset(torch.randn(100, 8)), batch_size=10, shuffle=True)
for step in range(100):
    (x,) = next(iter(loader))
    model(x).sum().backward()
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(8, 1)
loader = DataLoader(TensorDataset(torch.randn(100, 8)), batch_size=10, shuffle=True)
for epoch in range(10):
    for (x,) in loader:
        model(x).sum().backward()
```

## Fix safety
Left to a person: every sample then comes once per epoch, which before was left to chance.

## References
- PyTorch documentation, torch.utils.data: https://docs.pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.data.patterns.loaders import is_epoch_loop, is_loader, loader_calls
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR312", severity="warning", fix_class="semantic")


@RULE.in_source
def find(module: Module) -> Matches:
    """First batches of loaders begun anew, and loaders made anew, in loops."""
    yield from _begun_anew(module)
    yield from _made_anew(module)


def _begun_anew(module: Module) -> Matches:
    for call in module.calls("next"):
        begun = call.args[0] if call.args else None
        if not isinstance(begun, ast.Call) or module.name_of(begun.func) != "iter" or len(begun.args) != 1:
            continue
        loader = begun.args[0]
        loops = module.loops_around(call)
        if not loops or module.is_rare(call) or module.region(call).test or not is_loader(module, loader):
            continue
        if _depends(module, loader, loops[0]) or _ends_at_once(loops[0]):
            continue
        source = module.source(loader)
        yield match(
            call,
            f"every round of the loop in line {loops[0].lineno} begins `{source}` anew for one batch of it",
            advice=f"Loop over `{source}`, or make its iterator once before the loop and take next() of that, beginning anew at StopIteration.",
        )


def _made_anew(module: Module) -> Matches:
    for call in loader_calls(module):
        loops = [loop for loop in module.loops_around(call.call) if is_epoch_loop(loop)]
        if not loops or call.has_workers is False or not call.is_complete:
            continue
        if _depends(module, call.call, loops[0]) or module.is_rare(call.call):
            continue
        yield match(
            call.call,
            f"the loop in line {loops[0].lineno} makes this loader, and starts its workers, in every epoch",
            advice="Make it once before the loop, with persistent_workers=True.",
            confidence="medium",
        )


def _depends(module: Module, expression: ast.expr, loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether an expression uses anything that the loop gives or changes."""
    changed = {
        node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    } | {
        node.attr
        for node in ast.walk(loop)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    used = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)} | {
        node.attr for node in ast.walk(expression) if isinstance(node, ast.Attribute)
    }
    # What a method is called on may be another after it: data.shuffle(epoch).
    called = {
        node.func.value.id
        for node in ast.walk(loop)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node is not expression
    } - {module.source(node) for node in [expression] if isinstance(node, ast.Name)}
    return bool(used & (changed | called))


def _ends_at_once(loop: ast.For | ast.AsyncFor | ast.While) -> bool:
    """Whether a loop always ends in its first round."""
    return isinstance(loop.body[-1], ast.Break | ast.Return)
