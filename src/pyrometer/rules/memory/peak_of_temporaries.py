"""Temporaries dominate the peak of memory.

## What it does
Reads the ledger of the recorded peak and speaks where results that nothing needs any longer than the next operators, or
operators' own scratch memory, are the largest part of it and a remedy was rehearsed. Also where one wasteful source of
them is known: an optimizer that works on all parameters at once, the scores of all classes with their log-softmax and its
gradient, a scalar loss that keeps the storage of all unreduced values.

## Why it costs
They live for a moment, but the device must have room for that moment.

## Example
```python
import torch
from torch.nn import functional as F

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
loss = F.cross_entropy(head(hidden), target)
```

## Use instead
```python
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def summed(hidden, target):
    return F.cross_entropy(head(hidden), target, reduction="sum")


parts = zip(hidden.chunk(8), target.chunk(8))
loss = sum(checkpoint(summed, h, t, use_reentrant=False) for h, t in parts) / target.numel()
```

## Fix safety
A fused optimizer and a chunked loss give the same results to rounding; the chunked head runs twice.

## References
- PyTorch documentation, torch.optim.AdamW: https://pytorch.org/docs/stable/generated/torch.optim.AdamW.html
- PyTorch documentation, torch.utils.checkpoint: https://pytorch.org/docs/stable/checkpoint.html
"""

from __future__ import annotations

from pyrometer.rules.memory.patterns.peak import LIMITS, of_peak
from pyrometer.rules.rule import Case, Findings, declare

RULE = declare(code="PYR210", severity="info", scope="symptom", fix_class="tolerance", limits=LIMITS)

FAULTS = ("optimizer-implementation", "chunked-cross-entropy", "clone-scalar-loss")


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """The remedy that lowers a peak of temporaries most."""
    yield from of_peak(RULE, case, "temporaries", ("micro-batching", "no-padding"), faults=FAULTS)
