"""Operators compute for all rows or positions what is then only read for a few.

## What it does
Follows, in a few recorded steps, which part of each operator's result is read: a slice, the rows of a mask or an index, the positions
that a loss does not ignore, the rows that a product with a mask leaves. From there it goes back through operators that treat rows
alike, and adds up what those take for the rest. It does not go back through what mixes positions: attention, recurrence, residual
branches along a sequence, convolutions where single places are picked.

## Why it costs
Time for rows that nobody reads, and for their gradients. Of a masked language model with a vocabulary of 9,000 and 15 % masked positions,
two thirds of a training step were logits that the loss ignores.

## Example
```python
logits = head(hidden)
loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
```

## Use instead
```python
chosen = labels != -100
loss = torch.nn.functional.cross_entropy(head(hidden[chosen]), labels[chosen])
```
Select first, then compute: the last position before the head, the boxes above the threshold before their masks, the crop before what
changes single pixels.

## Fix safety
No fix is applied: only the program knows whether somebody else wants the rest. Where rows are independent, the results are the same but
for rounding. On a device, a mask makes the host wait for its number of rows; an index that is known does not.

## References
- PyTorch, `torch.nn.functional.cross_entropy`, `ignore_index`: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.cross_entropy.html
- Hugging Face, logits of the last position only (`num_logits_to_keep`): https://github.com/huggingface/transformers/pull/31292
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.quantity import format_percent
from pyrometer.rules.flowing import METHOD, of_step, removed
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.dataflow.report import PartlyUsed

RULE = declare(
    code="PYR530",
    severity="warning",
    fix_class="tolerance",
    limits=(Limit("min_share", 0.12, "of the step: less does not repay another order of the code"),),
)

SELECTING = {
    "aten::nll_loss_forward": "the loss ignores the others",
    "aten::nll_loss2d_forward": "the loss ignores the others",
    "aten::mul": "a mask sets the others to zero",
    "aten::mul_": "a mask sets the others to zero",
    "aten::diagonal": "of all pairs only the diagonal is read",
}


@RULE.in_evidence("dataflow")
def explain(case: Case) -> Findings:
    """Each line that selects late."""
    flow = case.dataflow
    assert flow is not None
    for number, fact in enumerate(flow.partly_used):
        share = of_step(case, fact.share)
        if share < case.limit(RULE, "min_share") or fact.where.file is None:
            continue
        place, selected = place_of(case, fact.where, op=fact.operators[0]), place_of(case, fact.selected)
        yield RULE.finding(
            message=f"{', '.join(fact.operators[:2])}{spoken(place)} compute{'s' if len(fact.operators) == 1 else ''} for all of which "
            f"{format_percent(fact.used, 2)} is read: {_reason(fact)}{spoken(selected)}; what is not read takes {format_percent(share)} of the step",
            where=place,
            evidence={
                "used": fact.used,
                "share": share,
                "selected_at": selected.text,
                "operators": fact.operators,
            },
            links=[f"/dataflow/partly_used/{number}"],
            cost=case.cost_of(share, METHOD),
            gain=removed(case, fact.share, "removal: the part of these operators whose results are not read"),
            confidence="high",
            advice="Before these operators, take the part that is read: apply the same mask, index or slice to what goes into them, not to what comes out "
            f"({selected.text or 'where it is selected'}).",
            resource=f"unused:{place.text}",
        )


def _reason(fact: PartlyUsed) -> str:
    return SELECTING.get(fact.by, "the rest is dropped")
