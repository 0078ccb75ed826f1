"""Activations dominate the peak of memory.

## What it does
Reads the ledger of the recorded peak and speaks where activations, which autograd keeps from the forward to the
backward pass, are the largest part of it and one of the rehearsed remedies lowers it notably. At most one rule says that
its part dominates a peak.

## Why it costs
Activations grow with the batch, the sequence and the depth, so they decide how large a batch fits. Each remedy pays with
something else: checkpointing with running forward twice, up to a third more time per step; micro-batches with smaller
operators; bfloat16 with digits.

## Example
```python
for x, y in loader:
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
```

## Use instead
```python
from torch.utils.checkpoint import checkpoint


def forward(self, x):
    for block in self.blocks:
        x = checkpoint(block, x, use_reentrant=False)
    return self.head(x)
```

## Fix safety
Checkpointing gives the same gradients to rounding, with random states restored; micro-batches give equal gradients to
rounding for a mean over samples, but normalisation over the batch then sees smaller parts; autocast rounds products to
three decimal digits.

## References
- PyTorch documentation, torch.utils.checkpoint: https://pytorch.org/docs/stable/checkpoint.html
- PyTorch documentation, Automatic Mixed Precision: https://pytorch.org/docs/stable/amp.html
"""

from __future__ import annotations

from pyrometer.rules.memory.patterns.peak import LIMITS, of_peak
from pyrometer.rules.rule import Case, Findings, declare

RULE = declare(
    code="PYR208",
    severity="info",
    scope="symptom",
    fix_class="tolerance",
    lever="checkpointing",
    limits=LIMITS,
)

REMEDIES = (
    "activation-checkpointing",
    "micro-batching",
    "bf16-autocast",
    "offload-saved-tensors",
    "no-padding",
    "chunked-cross-entropy",
)


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """The remedy that lowers a peak of activations most."""
    yield from of_peak(RULE, case, "activations", REMEDIES)
