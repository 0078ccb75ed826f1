"""Random numbers are drawn one by one by Python.

## What it does
Adds up what the user's lines spend in `random` and in the generators of NumPy, by samples of the host's time, and speaks where
that is a good part of the step.

## Why it costs
A number drawn by Python costs some hundred nanoseconds to a microsecond, and with its loop more; `torch.rand` draws a thousand
in that time.

## Example
```python
kept = [[random.random() > 0.15 for _ in row] for row in tokens.tolist()]
mask = torch.tensor(kept)
```

## Use instead
```python
mask = torch.rand(tokens.shape) > 0.15
```

## Fix safety
No fix is applied: other numbers are drawn, of the same distribution.

## References
- PyTorch, Random sampling: https://docs.pytorch.org/docs/stable/torch.html#random-sampling
"""

from __future__ import annotations

from pyrometer.rules.host.patterns.spending import RANDOM, spending, spending_finding
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR125",
    severity="warning",
    fix_class="semantic",
    limits=(Limit("min_share", 0.15, "of the step: less is seldom the first thing to change"),),
)


@RULE.in_evidence("host")
def explain(case: Case) -> Findings:
    """Where all of it together takes a good part of the step."""
    spent = spending(case, RANDOM, case.limit(RULE, "min_share"))
    if spent is not None:
        yield spending_finding(
            RULE,
            case,
            spent,
            what="Drawing random numbers in Python",
            stays=0.2,
            advice="Draw all of them by one call (`torch.rand(shape)`, `torch.randperm`, `torch.multinomial`), on the device that needs them, and decide "
            "by comparing whole tensors.",
        )
