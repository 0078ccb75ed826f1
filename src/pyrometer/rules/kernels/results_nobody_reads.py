"""Results are computed that nobody reads.

## What it does
Follows, in a few recorded steps, what operators make, and adds up those whose results are gone or written over before anything reads
them: no operator that is needed itself, no `.item()`, no NumPy; nor are they returned or kept.

## Why it costs
A metric that is computed in each step and shown in every fiftieth, an auxiliary head of the training whose output inference drops,
weights of an attention that nobody looks at: all of it is time.

## Example
```python
features, auxiliary = backbone(images), auxiliary_head(images)
scores = classify(features)
```

## Use instead
```python
features = backbone(images)
scores = classify(features)
```
Where it is read once in a while, compute it then: `if step % 50 == 0: accuracy = …`.

## Fix safety
No fix is applied: what happens beside the result (statistics of a normalisation, random numbers) would no longer happen, and what was
not read in the steps that were followed may be read later.

## References
- PyTorch, `torch.nn.MultiheadAttention`, `need_weights`: https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
"""

from __future__ import annotations

from pyrometer.quantity import format_percent
from pyrometer.rules.flowing import METHOD, of_step, removed
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR532",
    severity="warning",
    fix_class="semantic",
    limits=(Limit("min_share", 0.05, "of the step: less does not repay a change"),),
)


@RULE.in_evidence("dataflow")
def explain(case: Case) -> Findings:
    """Each function with some."""
    flow = case.dataflow
    assert flow is not None
    for number, fact in enumerate(flow.unread):
        share = of_step(case, fact.share)
        if fact.what != "results" or share < case.limit(RULE, "min_share") or fact.where.file is None:
            continue
        place = place_of(case, fact.where, op=fact.operators[0])
        yield RULE.finding(
            message=f"what {', '.join(fact.operators[:2])} compute{'s' if len(fact.operators) == 1 else ''}{spoken(place)} is freed before anything "
            f"reads it, in each of {flow.num_steps - 1} steps, and takes {format_percent(share)} of the step",
            where=place,
            evidence={"share": share, "operators": fact.operators, "num_steps": flow.num_steps},
            links=[f"/dataflow/unread/{number}"],
            cost=case.cost_of(share, METHOD),
            gain=removed(case, fact.share, "removal: the operators whose results nobody reads"),
            confidence="medium",
            advice="Leave it out, or compute it only in the steps in which it is read.",
            resource=f"unused:{place.text}",
        )
