"""Inference is timed with gradients recorded, or in training mode.

## What it does
Finds a model that is made and timed in the same function, with neither a backward pass nor an optimizer in the file, whose timed call is not
under `no_grad` or `inference_mode`. It adds if `eval()` is missing as well.

## Why it costs
Each operator then records what a backward pass would need and keeps its inputs alive, and layers such as dropout and batch norm do the
work of training. The figure is that of neither inference nor training.

## Example
```python
import time

import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Dropout())
x = torch.randn(8, 64)
model(x)
start = time.perf_counter()
for _ in range(100):
    model(x)
print((time.perf_counter() - start) / 100)
```

## Use instead
```python
import time

import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Dropout()).eval()
x = torch.randn(8, 64)
with torch.inference_mode():
    model(x)
    start = time.perf_counter()
    for _ in range(100):
        model(x)
    print((time.perf_counter() - start) / 100)
```

## Fix safety
Left to a person: `eval()` changes what dropout and batch norm compute, and tensors of `inference_mode` cannot be used in a later backward pass.

## References
- PyTorch documentation, Autograd mechanics, locally disabling gradient computation: https://docs.pytorch.org/docs/stable/notes/autograd.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.match import Matches, match
from pyrometer.rules.measuring.patterns.models import made_here
from pyrometer.rules.measuring.patterns.timed import Timing, timings
from pyrometer.rules.measuring.patterns.timed_work import Work, work_of
from pyrometer.rules.rule import Module, declare

RULE = declare(code="PYR012", severity="warning", fix_class="semantic", lever="inference_mode")

GLOBAL_SWITCHES = ("torch.set_grad_enabled", "torch.autograd.set_grad_enabled")


@RULE.in_source
def find(module: Module) -> Matches:
    """Timed calls of a model that record gradients which nothing in the file uses."""
    found = timings(module)
    if not found or _trains(module) or any(True for _ in module.calls(*GLOBAL_SWITCHES)):
        return
    for timing in found:
        work = work_of(module, timing)
        call = _recording_call(module, timing, work)
        if call is None or work.over_loader:
            continue
        name = module.source(call.func)
        evaluated = any(True for _ in module.method_calls("eval", "train", "requires_grad_"))
        also = "" if evaluated else f", and {name} is never put into evaluation mode"
        yield match(
            call,
            f"the timed call of {name} records gradients that nothing uses{also}",
            advice=f"Call {name}.eval() once and time under torch.inference_mode().",
            confidence="high" if not evaluated else "medium",
        )


def _recording_call(module: Module, timing: Timing, work: Work) -> ast.Call | None:
    for call in work.model_calls:
        around = module.region(call)
        if around.no_grad or around.inference_mode or not timing.holds(call):
            continue
        if isinstance(call.func, ast.Name) and made_here(module, call.func.id, timing.start):
            return call
    return None


def _trains(module: Module) -> bool:
    """Whether anything in the file has a use for gradients."""
    if any(True for _ in module.method_calls("backward", "zero_grad", "requires_grad_")):
        return True
    return any(
        True for _ in module.calls("torch.autograd.grad", "torch.autograd.backward", "torch.func.grad")
    )
