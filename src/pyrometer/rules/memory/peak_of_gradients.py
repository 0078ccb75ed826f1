"""Gradients dominate the peak of memory.

## What it does
Reads the ledger of the recorded peak and speaks where gradients are its largest part and updating each parameter as soon
as its gradient is there was rehearsed to lower it.

## Why it costs
All gradients together take as many bytes as the parameters, and between backward pass and update they all live at once,
though each parameter needs only its own.

## Example
```python
loss.backward()
optimizer.step()
optimizer.zero_grad()
```

## Use instead
```python
import torch

optimizers = {p: torch.optim.AdamW([p], lr=1e-3) for p in model.parameters()}


def update(p):
    optimizers[p].step()
    optimizers[p].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(update)

loss.backward()
```

## Fix safety
Semantic: the update is the same, but gradients can then neither be clipped by their joint norm, nor accumulated over
steps, nor unscaled before the update.

## References
- PyTorch tutorial, How to save memory by fusing the optimizer step into the backward pass:
  https://pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html
"""

from __future__ import annotations

from pyrometer.rules.memory.patterns.peak import LIMITS, of_peak
from pyrometer.rules.rule import Case, Findings, declare

RULE = declare(code="PYR218", severity="info", scope="symptom", fix_class="semantic", limits=LIMITS)


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """Stepping within the backward pass, where that lowers the peak."""
    yield from of_peak(RULE, case, "gradients", ("step-in-backward", "bf16-parameters"))
