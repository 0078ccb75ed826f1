"""Making samples keeps all CPUs busy, and the step still waits.

## What it does
Carries the loader's own advice for programs in which no number of workers is enough: making a batch takes more CPU time than
all CPUs have while the step runs.

## Why it costs
Workers share the CPUs. Once these are busy, a batch comes no sooner than its CPU time divided by their number, and only cheaper samples,
or more CPUs, help.

## Example
```python
import torch


def decode(runs: list[int]) -> torch.Tensor:
    pixels = []
    for value in runs:
        for _ in range(4):
            pixels.append((value / 255 - 0.5) / 0.25)
    return torch.tensor(pixels)
```

## Use instead
```python
import torch


def decode(runs: list[int]) -> torch.Tensor:
    return ((torch.tensor(runs) / 255 - 0.5) / 0.25).repeat_interleave(4)
```

## Fix safety
Left to a person: values differ by rounding where the order of operations changes.

## References
- PyTorch tutorials, Performance Tuning Guide: https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- Murray et al., tf.data: A Machine Learning Data Processing Framework, 2021: https://arxiv.org/abs/2101.12127
"""

from __future__ import annotations

from pyrometer.rules.data.patterns.waiting import advised
from pyrometer.rules.rule import Case, Findings, declare

RULE = declare(code="PYR314", severity="warning", fix_class="semantic")


@RULE.in_evidence("loading")
def explain(case: Case) -> Findings:
    """The loader's advice to make samples cheaper."""
    yield from advised(RULE, case, "cheaper-samples", "constant-time-access")
