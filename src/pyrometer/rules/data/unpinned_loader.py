"""Batches are copied to the device from pageable memory.

## What it does
Finds a DataLoader without `pin_memory` whose batches the loop over it moves to a CUDA device, and carries the loader's own advice.

## Why it costs
A copy from pageable memory goes through a pinned buffer of the driver and the host waits for it, so that it cannot overlap with
computing. From pinned memory it is a direct transfer, and with `non_blocking=True` the host goes on at once.

## Example
```python
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(8, 1).to("cuda")
loader = DataLoader(TensorDataset(torch.randn(100, 8)), batch_size=10)
for (x,) in loader:
    model(x.to("cuda")).sum().backward()
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(8, 1).to("cuda")
loader = DataLoader(TensorDataset(torch.randn(100, 8)), batch_size=10, pin_memory=True)
for (x,) in loader:
    model(x.to("cuda", non_blocking=True)).sum().backward()
```

## Fix safety
The values are the same. It is no exact fix all the same: batches of types of their own need a `pin_memory` method, tensors that are on a
device already cannot be pinned, and a machine without an accelerator warns.

## References
- PyTorch documentation, torch.utils.data, memory pinning: https://docs.pytorch.org/docs/stable/data.html
- PyTorch tutorials, A guide on good usage of non_blocking and pin_memory(): https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
"""

from __future__ import annotations

from pyrometer.rules.data.patterns.loaders import (
    MISSING_ARGUMENT,
    LoaderCall,
    loader_calls,
    loops_over,
    moves_to_cuda,
)
from pyrometer.rules.data.patterns.waiting import advised
from pyrometer.rules.match import Fix, Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare
from pyrometer.source.edit import replace

RULE = declare(
    code="PYR304",
    about_devices=True,
    severity="warning",
    fix_class="semantic",
    lever="pin_memory",
)


@RULE.in_evidence("loading")
def explain(case: Case) -> Findings:
    """The loader's advice to pin, which it gives from the time that the copy to the device takes."""
    yield from advised(RULE, case, "pin-memory", resource="copy:H2D", cost=None)


@RULE.in_source
def find(module: Module) -> Matches:
    """Loaders that do not pin what a loop over them copies to the device."""
    for loader_call in loader_calls(module):
        if not loader_call.is_complete or loader_call.value("pin_memory") not in (MISSING_ARGUMENT, False):
            continue
        moved = next(
            (call for loop in loops_over(loader_call) if (call := moves_to_cuda(module, loop))), None
        )
        if moved is None:
            continue
        yield match(
            loader_call.call,
            f"this loader does not pin its batches, which line {moved.lineno} copies to the device",
            advice="Give it pin_memory=True, and copy with non_blocking=True.",
            fix=_fix(module, loader_call),
        )


def _fix(module: Module, call: LoaderCall) -> Fix | None:
    given = call.argument("pin_memory")
    edits = [replace(module, given, "True")] if given is not None else call.with_keyword("pin_memory=True")
    return Fix(fix_class="semantic", title="Pin the batches", edits=edits) if edits else None
