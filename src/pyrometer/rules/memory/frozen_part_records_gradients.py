"""Autograd records a graph for parameters that are not trained.

## What it does
Reads the rehearsed advice of a training: parameters that want gradients although no optimizer updates them, and batches
with `requires_grad=True` that make autograd pass backwards through frozen layers.

## Why it costs
Gradients of untrained parameters are computed and kept like all others, and every activation on the way to them is kept
from the forward to the backward pass.

## Example
```python
import torch

optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3)
loss = loss_fn(head(trunk(x)), y)
```

## Use instead
```python
import torch

trunk.requires_grad_(False)
optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3)
loss = loss_fn(head(trunk(x)), y)
```

## Fix safety
Semantic only for whoever reads the gradients that are no longer computed; the training is the same.

## References
- PyTorch notes, Autograd mechanics, "Setting requires_grad": https://pytorch.org/docs/stable/notes/autograd.html
"""

from __future__ import annotations

from pyrometer.quantity import format_bytes
from pyrometer.rules.from_advice import given_advice
from pyrometer.rules.memory.patterns.peak import of_advice
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR220",
    severity="warning",
    fix_class="semantic",
    limits=(
        Limit(
            "min_saving",
            0.05,
            "a smaller part of the peak shows in no batch size; the work that goes with it is small too",
        ),
    ),
)


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """Each rehearsed way to record less."""
    memory = case.memory
    assert memory is not None
    for given in given_advice(case.memory, "/memory", "freeze-untrained", "no-grad-trunk"):
        if given.advice.saves_bytes < case.limit(RULE, "min_saving") * memory.peak_bytes:
            continue
        yield of_advice(
            RULE,
            case,
            given,
            "without it",
            message=f"Autograd records a graph that no training needs, which takes {format_bytes(given.advice.saves_bytes)} of the "
            f"peak of {format_bytes(memory.peak_bytes)}",
            confidence="medium",
            resource="peak:gradients",
        )
