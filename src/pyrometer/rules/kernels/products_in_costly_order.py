"""Three matrices are multiplied in the order that takes more.

## What it does
Follows, in a few recorded steps, what becomes of matrix products: one that is only multiplied with a third matrix, scaled or summed, and
that is so large that the other two first would take at most half of the multiplications.

## Why it costs
(a b) c and a (b c) are the same, but the product in the middle may be small or huge: with queries and keys of 2,048 places and 32 channels,
attention without a softmax makes a matrix of 2,048 × 2,048 from the left, and one of 32 × 32 from the right.

## Example
```python
def linear_attention(query, key, value):
    similarity = query @ key.transpose(-2, -1)
    return (similarity @ value) / similarity.sum(-1, keepdim=True)
```

## Use instead
```python
def linear_attention(query, key, value):
    context = key.transpose(-2, -1) @ value
    return (query @ context) / (query @ key.sum(-2).unsqueeze(-1))
```

## Fix safety
No fix is applied: sums round in another order. A softmax, a mask or a dropout between both products needs the large one.

## References
- PyTorch, `torch.linalg.multi_dot`: https://docs.pytorch.org/docs/stable/generated/torch.linalg.multi_dot.html
- Katharopoulos et al., "Transformers are RNNs" (2020), section 3.2
"""

from __future__ import annotations

from pyrometer.quantity import format_percent
from pyrometer.rules.flowing import METHOD, of_step, removed
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR536",
    severity="warning",
    fix_class="tolerance",
    limits=(Limit("min_share", 0.08, "of the step: less does not repay another order of the code"),),
)


@RULE.in_evidence("dataflow")
def explain(case: Case) -> Findings:
    """Each line with such a product."""
    assert case.dataflow is not None
    for number, fact in enumerate(case.dataflow.product_orders):
        share = of_step(case, fact.share)
        if share < case.limit(RULE, "min_share") or fact.where.file is None:
            continue
        place, second = place_of(case, fact.where), place_of(case, fact.second)
        sizes = " × ".join(f"{size:,}" for size in fact.shape)
        yield RULE.finding(
            message=f"a product of {sizes} numbers{spoken(place)} is only multiplied again{spoken(second)}: the other order takes "
            f"{format_percent(fact.left)} of the multiplications, and spares {format_percent(share)} of the step",
            where=place,
            evidence={"share": share, "left": fact.left, "second_at": second.text},
            links=[f"/dataflow/product_orders/{number}"],
            cost=case.cost_of(share, METHOD),
            gain=removed(case, fact.share, "removal: multiplications that the other order does without"),
            confidence="high",
            advice="Multiply in the other order: instead of `(a @ b) @ c` write `a @ (b @ c)`, and `a @ b.sum(-1, keepdim=True)` for sums over the rows.",
            resource=f"products:{place.text}",
        )
