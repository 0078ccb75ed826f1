"""The learning-rate scheduler is stepped in every micro-batch.

## What it does
Finds loops that accumulate gradients over several backward passes, in which the scheduler's `step` stands beside the backward pass
and not beside the optimizer's `step`.

## Why it costs
The learning rate runs through its schedule as many times faster as there are micro-batches in a step: warm-up ends early, the rate
reaches its end long before the training does, and the rest of the run learns next to nothing.

## Example
```python
import torch

for number, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / accumulate
    loss.backward()
    if (number + 1) % accumulate == 0:
        optimizer.step()
        optimizer.zero_grad()
    scheduler.step()
```

## Use instead
```python
import torch

for number, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets) / accumulate
    loss.backward()
    if (number + 1) % accumulate == 0:
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
```

## Fix safety
No fix is applied: the schedule becomes another one. A schedule whose length was chosen in micro-batches must be shortened.

## References
- PyTorch, torch.optim, "How to adjust learning rate": https://docs.pytorch.org/docs/stable/optim.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.distributed.patterns.accumulation import accumulations, is_scheduler_step
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR611", severity="error", fix_class="semantic")


@RULE.in_source
def find(module: Module) -> Matches:
    """Scheduler steps in an accumulating loop, as often as the backward pass."""
    calls: set[ast.Call] = set()
    for accumulation in accumulations(module):
        for call in module.method_calls("step"):
            beside = module.loops_around(call)[:1] == [accumulation.loop] and not _under_condition(
                module, call, accumulation.loop
            )
            if beside and call not in calls and is_scheduler_step(call) and not module.region(call).test:
                calls.add(call)
                yield match(
                    call,
                    f"the scheduler is stepped in every round of the loop in line {accumulation.loop.lineno}, the optimizer in some",
                    advice=f"Step it right after the optimizer, in line {accumulation.step.lineno}.",
                )


def _under_condition(module: Module, call: ast.Call, loop: ast.AST) -> bool:
    for above in module.ancestors(call):
        if above is loop:
            return False
        if isinstance(above, ast.If | ast.Try | ast.Match):
            return True
    return False
