"""The optimizer's state dominates the peak of memory.

## What it does
Reads the ledger of the recorded peak and speaks where what the optimizer remembers of each parameter is the largest part
of it and another optimizer was rehearsed that remembers less; also where it still keeps state of parameters that no
longer train.

## Why it costs
Adam keeps two numbers per parameter, twice the parameters' own bytes in float32. They do not depend on the batch: a
smaller batch or checkpointing does not lower them.

## Example
```python
import torch

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
```

## Use instead
```python
import torch

optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-2)
```

## Fix safety
Semantic: another optimizer trains otherwise and must be tuned anew. Dropping state of frozen parameters changes nothing
until they train again. With several devices, sharding the state changes nothing else.

## References
- PyTorch documentation, torch.optim: https://pytorch.org/docs/stable/optim.html
- PyTorch documentation, ZeroRedundancyOptimizer: https://pytorch.org/docs/stable/distributed.optim.html
"""

from __future__ import annotations

from pyrometer.rules.memory.patterns.peak import LIMITS, of_peak
from pyrometer.rules.rule import Case, Findings, declare

RULE = declare(code="PYR209", severity="info", scope="symptom", fix_class="semantic", limits=LIMITS)


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """The remedy that lowers the optimizer's state most."""
    remedies = ("optimizer-8bit", "optimizer-adafactor", "optimizer-sgd")
    yield from of_peak(RULE, case, "optimizer state", remedies, faults=("stale-optimizer-state",))
