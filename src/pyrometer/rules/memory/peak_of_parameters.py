"""Parameters dominate the peak of memory, in float32.

## What it does
Reads the ledger of the recorded peak and speaks where the model's own weights are its largest part and keeping them in
bfloat16 was rehearsed to lower it.

## Why it costs
Four bytes per weight are twice what inference mostly needs, and every product reads all of them: where weights dominate
the memory they often dominate the traffic too.

## Example
```python
model = build_model().eval()
```

## Use instead
```python
import torch

model = build_model().eval().to(torch.bfloat16)
```

## Fix safety
Semantic: results are rounded to about three decimal digits, so compare outputs on data that you know; a training with
parameters in bfloat16 may stall late, as changes below 1/256 of a weight are lost.

## References
- PyTorch documentation, Tensor Attributes, torch.dtype: https://pytorch.org/docs/stable/tensor_attributes.html
"""

from __future__ import annotations

from pyrometer.rules.memory.patterns.peak import LIMITS, of_peak
from pyrometer.rules.rule import Case, Findings, declare

RULE = declare(code="PYR219", severity="info", scope="symptom", fix_class="semantic", limits=LIMITS)


@RULE.in_evidence("memory")
def explain(case: Case) -> Findings:
    """Two bytes per weight instead of four, where that lowers the peak."""
    yield from of_peak(RULE, case, "parameters", ("bf16-parameters",))
