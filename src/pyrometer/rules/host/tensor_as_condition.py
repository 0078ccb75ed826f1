"""A Python condition depends on the value of a tensor, in every step.

## What it does
Finds tensors in `if`, `while`, `assert`, `and`, `or`, `not`, `bool(t)`, `x in t`, `max(t, u)`, and `torch.equal` or
`torch.allclose`, in code that runs once per step; and in a trace the questions that made the host wait.

## Why it costs
The branch cannot be chosen before the value is known: the host waits until the device has done all that is queued, and has
nothing queued when it goes on. `torch.compile` breaks the graph at such a line.

## Example
```python
import torch

for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    if torch.isnan(loss):
        continue
    loss.backward()
```

## Use instead
Choose on the device, where both outcomes can be computed, or ask seldom.
```python
import torch

for step, (inputs, targets) in enumerate(loader):
    loss = criterion(model(inputs), targets)
    is_finite &= torch.isfinite(loss.detach())
    torch.where(torch.isfinite(loss), loss, torch.zeros_like(loss)).backward()
    if step % 100 == 0 and not is_finite:
        raise RuntimeError("the loss is not finite")
```

## Fix safety
No fix is applied: a choice on the device computes both branches, which is not always the same.

## References
- PyTorch, `torch.where`: https://docs.pytorch.org/docs/stable/generated/torch.where.html
- PyTorch, Performance Tuning Guide, "Avoid unnecessary CPU-GPU synchronization": https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.host.patterns.avoidable import (
    COMPARING,
    ends_early,
    evaluates,
    in_layer,
    is_avoidable_question,
)
from pyrometer.rules.host.patterns.reads import Read, during, sure_reads
from pyrometer.rules.host.patterns.truth import conditions
from pyrometer.rules.host.patterns.waits import LIMITS, Stall, Told, stall_findings
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare
from pyrometer.source.value import Kind

RULE = declare(
    code="PYR104",
    about_devices=True,
    severity="warning",
    fix_class="semantic",
    lever="remove_sync",
    limits=LIMITS,
)

CHOOSE = "Choose on the device with `torch.where`, or ask only every hundred steps."


@RULE.in_source
def find(module: Module) -> Matches:
    """Questions about tensors in hot code."""
    for read, why, confidence in sure_reads(module, conditions):
        if _only_ends_its_loop(module, read, why.loop):
            continue
        if (in_layer(why) or evaluates(module, why)) and not is_avoidable_question(module, read):
            continue
        message = f"`{read.text}` is asked for its truth, so that the host waits for the device{during(why)}"
        yield match(read.node, message, advice=advise(module, read), confidence=confidence, hot=why.why)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Questions that a trace shows, with what they cost."""

    def tell(stall: Stall) -> Told:
        known = stall.module is not None and stall.read is not None
        return Told(advise(stall.module, stall.read) if known else CHOOSE)  # type: ignore[arg-type]

    return stall_findings(RULE, case, tell)


def _only_ends_its_loop(module: Module, read: Read, loop: ast.AST | None) -> bool:
    """Whether it ends a loop that is hot by itself and runs no module: drawing numbers until they fit."""
    asking = module.statement_of(read.node)
    function = read.node.func if isinstance(read.node, ast.Call) else None
    if getattr(function, "attr", "") in COMPARING and not _trains_or_loads(module, loop):
        return True  # What two computations give is compared to learn something, and not in every step.
    if ends_early(module, read):
        return True
    if isinstance(asking, ast.If) and loop is not None and not _trains_or_loads(module, loop):
        parts = (node for statement in asking.body for node in ast.walk(statement))
        if any(isinstance(node, ast.Break) for node in parts):
            return True  # A sequence is made until it is done: nothing else says when.
    if not isinstance(loop, ast.While) or module.hot(loop) is not None:
        return False
    ends = asking is loop or (isinstance(asking, ast.If) and isinstance(asking.body[0], ast.Break))
    calls = (node for statement in loop.body for node in ast.walk(statement) if isinstance(node, ast.Call))
    return ends and not any(module.value_of(call.func).kind is Kind.MODULE for call in calls)


def _trains_or_loads(module: Module, loop: ast.AST | None) -> bool:
    loops = module.heat.loops
    if isinstance(loop, ast.For | ast.AsyncFor) and loops.loader_of(loop) is not None:
        return True
    return isinstance(loop, ast.For | ast.AsyncFor | ast.While) and loops.trains(loop)


def advise(module: Module, read: Read) -> str:
    """What to do about one question, by the form that it has."""
    statement = module.statement_of(read.node)
    if isinstance(statement, ast.Assert):
        return "Check with `torch._assert_async`, which asks on the device, or only every hundred steps."
    if isinstance(statement, ast.While):
        return "Run a fixed number of rounds between two questions, and let finished parts of the batch pass unchanged."
    if isinstance(read.node, ast.Call) and module.name_of(read.node.func) in {"max", "min"}:
        name = "torch.maximum" if module.name_of(read.node.func) == "max" else "torch.minimum"
        return f"Use `{name}`, which compares on the device."
    return CHOOSE
