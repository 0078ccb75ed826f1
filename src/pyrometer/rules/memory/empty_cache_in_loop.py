"""The allocator's cache is emptied in every step.

## What it does
Finds `torch.cuda.empty_cache()` and its kin in hot loops, and in a trace the time that the calls take. Once per epoch,
between phases, or after an out-of-memory error is what it is for, and not spoken of.

## Why it costs
The allocator keeps freed memory because asking the device for it is slow. Emptying the cache waits until the device has
finished, gives every unused segment back, and the next step asks for all of it again. It makes no memory available that
the same process could not use anyway.

## Example
```python
import torch

for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.empty_cache()
```

## Use instead
```python
import torch

for x, y in loader:
    loss_fn(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
```

## Fix safety
Semantic, though results stay the same: another process on the same device may count on the memory, and where the
allocator is fragmented `expandable_segments` should be set instead.

## References
- PyTorch notes, CUDA semantics, "Memory management": https://pytorch.org/docs/stable/notes/cuda.html
- PyTorch documentation, torch.cuda.memory.empty_cache:
  https://pytorch.org/docs/stable/generated/torch.cuda.memory.empty_cache.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.rules.match import Matches
from pyrometer.rules.memory.patterns import removable
from pyrometer.rules.rule import Case, Findings, Module, declare

if TYPE_CHECKING:
    import ast

RULE = declare(code="PYR205", severity="warning", fix_class="semantic", limits=(removable.MIN_SHARE,))

NAMES = tuple(
    f"torch.{part}.empty_cache"
    for part in ("cuda", "cuda.memory", "xpu", "mps", "npu", "accelerator", "accelerator.memory")
)

TOLD = removable.Told(
    does="gives the allocator's cache back, to ask for it again in the next step",
    advice="Delete the call: the allocator reuses what is free. Against fragmentation set "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
)


def _calls(module: Module) -> Iterator[ast.Call]:
    return module.calls(*NAMES)


@RULE.in_source
def find(module: Module) -> Matches:
    """Calls in every step."""
    yield from removable.matches(module, _calls, TOLD)


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Calls with the time that they take."""
    yield from removable.findings(RULE, case, r": empty_cache$", _calls, TOLD)
