"""A tensor is copied to the host in every step, and the host waits for it.

## What it does
Finds `.cpu()` and `.to("cpu")` of a tensor in code that runs once per step, where the copy is calculated with as the device could:
reduced, compared, added up, or given to torch again. A copy that is itself the result, or that a library of arrays, a plot or a
metric of the host needs, is left alone. In a trace it finds the copies from a device that held up the host.

## Why it costs
A copy to ordinary memory of the host returns only when all work before it on the device is done and the bytes have arrived.
Until then the host launches nothing, and afterwards the device waits for the host.

## Example
```python
import torch

for inputs, targets in loader:
    scores = model(inputs)
    total += scores.detach().cpu().numpy().mean()
```

## Use instead
Calculate on the device and fetch the answer seldom; or copy into pinned memory and read it one step later.
```python
import torch

total = torch.zeros((), device=device)
for inputs, targets in loader:
    scores = model(inputs)
    total += scores.detach().mean()
mean = total.item() / len(loader)
```

## Fix safety
No fix is applied: what is to be calculated where is for the program to say.

## References
- PyTorch, "A guide on good usage of non_blocking and pin_memory()": https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html
- PyTorch, Performance Tuning Guide: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

import ast

from pyrometer.rules.host.patterns.copied import is_calculated_with, is_result
from pyrometer.rules.host.patterns.reads import Read, copies_to_host, during, sure_reads
from pyrometer.rules.host.patterns.waits import LIMITS, Stall, Told, stall_findings
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare

RULE = declare(
    code="PYR102",
    about_devices=True,
    severity="warning",
    fix_class="semantic",
    lever="remove_sync",
    limits=LIMITS,
)

ADVICE = "Calculate on the device what is needed of it, and fetch that once after the loop."
LATER = (
    'Copy into pinned memory without waiting (`.to("cpu", non_blocking=True)`), record an event, and read the copy one step '
    "later, when the event has passed."
)


@RULE.in_source
def find(module: Module) -> Matches:
    """Copies in hot code that are not what the code is for."""
    for read, why, confidence in sure_reads(module, copies_to_host):
        if _lies_on_host(read):
            continue
        if why.within != "request" and not is_result(module, read) and is_calculated_with(module, read):
            message = f"`{read.text}` copies a tensor to the host and waits for it{during(why)}"
            yield match(read.node, message, advice=f"{ADVICE} {LATER}", confidence=confidence, hot=why.why)


def _lies_on_host(read: Read) -> bool:
    """Whether the call itself says that the tensor lies there already: an array is made of no tensor of a device."""
    function = read.node.func if isinstance(read.node, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in {
        "numpy",
        "asarray",
        "array",
        "ascontiguousarray",
    }


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Copies that a trace shows, with what they cost."""

    def tell(stall: Stall) -> Told:
        is_needed = (
            stall.module is not None and stall.read is not None and is_result(stall.module, stall.read)
        )
        return Told(LATER if is_needed else f"{ADVICE} {LATER}")

    return stall_findings(RULE, case, tell)
