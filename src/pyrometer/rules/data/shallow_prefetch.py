"""Workers prepare too few batches ahead.

## What it does
Carries the loader's own advice where workers keep up on average but the queue runs empty, and finds `prefetch_factor=1` in source text.

## Why it costs
With a short queue one slow batch is enough to make the step wait, even though the workers are idle at other times. A longer queue absorbs
uneven batches; it does not help where workers are too slow on average.

## Example
```python
import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(100, 8))
loader = DataLoader(data, batch_size=10, num_workers=4, prefetch_factor=1)
```

## Use instead
```python
import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(100, 8))
loader = DataLoader(data, batch_size=10, num_workers=4, prefetch_factor=4)
```

## Fix safety
The same batches in the same order. It costs memory: `num_workers × prefetch_factor` batches are held at once.

## References
- PyTorch documentation, torch.utils.data.DataLoader, prefetch_factor: https://docs.pytorch.org/docs/stable/data.html
"""

from __future__ import annotations

from pyrometer.rules.data.patterns.loaders import loader_calls
from pyrometer.rules.data.patterns.waiting import advised
from pyrometer.rules.match import Matches, match
from pyrometer.rules.rule import Case, Findings, Module, declare

RULE = declare(code="PYR306", severity="info", fix_class="exact", lever="prefetch_factor")


@RULE.in_evidence("loading")
def explain(case: Case) -> Findings:
    """The loader's advice to prepare more batches."""
    yield from advised(RULE, case, "deeper-queue", severity="warning")


@RULE.in_source
def find(module: Module) -> Matches:
    """Loaders whose workers may hold one batch each."""
    for call in loader_calls(module):
        given = call.argument("prefetch_factor")
        if given is not None and call.value("prefetch_factor") == 1 and call.has_workers:
            yield match(
                given,
                "each worker prepares one batch only, so that any slow batch makes the step wait",
                advice="Leave it out (2 batches per worker), or raise it where batches differ in cost; it holds more batches in memory.",
                confidence="medium",
            )
