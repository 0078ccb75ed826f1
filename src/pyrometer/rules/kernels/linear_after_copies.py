"""A linear map is applied to copies: to an enlarged image, or to repeated rows.

## What it does
Follows, in a few recorded steps, what enlarges or repeats values (`interpolate`, `repeat`, `expand`), and finds convolutions with a
kernel of one and matrix products that are then applied to all copies, where at most half of the places are no copies.

## Why it costs
Such a map treats each place alike, so that it gives the same for each copy. Before an enlargement by four in both directions it does a
sixteenth of the work.

## Example
```python
def merge(project, coarse, size):
    return project(torch.nn.functional.interpolate(coarse, size=size, mode="bilinear"))
```

## Use instead
```python
def merge(project, coarse, size):
    return torch.nn.functional.interpolate(project(coarse), size=size, mode="bilinear")
```

## Fix safety
No fix is applied: sums round in another order where values are interpolated; of plain copies they are the same. Where the map makes more
channels than it is given, more of them are enlarged.

## References
- PyTorch, `torch.nn.functional.interpolate`: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

from __future__ import annotations

from pyrometer.quantity import format_percent
from pyrometer.rules.flowing import METHOD, of_step, removed
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR534",
    severity="warning",
    fix_class="tolerance",
    limits=(Limit("min_share", 0.08, "of the step: less does not repay another order of the code"),),
)


@RULE.in_evidence("dataflow")
def explain(case: Case) -> Findings:
    """Each line with such a map."""
    assert case.dataflow is not None
    for number, fact in enumerate(case.dataflow.late_linear):
        share = of_step(case, fact.share)
        if share < case.limit(RULE, "min_share") or fact.where.file is None:
            continue
        place, copied = place_of(case, fact.where, op=fact.operator), place_of(case, fact.copied)
        yield RULE.finding(
            message=f"{fact.operator}{spoken(place)} maps copies that {fact.by} makes{spoken(copied)}: {format_percent(fact.distinct, 2)} of the places "
            f"are no copies, and the others take {format_percent(share)} of the step",
            where=place,
            evidence={"share": share, "distinct": fact.distinct, "copied_at": copied.text},
            links=[f"/dataflow/late_linear/{number}"],
            cost=case.cost_of(share, METHOD),
            gain=removed(case, fact.share, "removal: the map of the places that are copies"),
            confidence="high",
            advice="Apply the map first, and enlarge or repeat its result: it treats each place alike.",
            resource=f"copies:{place.text}",
        )
