"""Batches are padded to a length that none of their rows reaches.

## What it does
Looks at the indices that embeddings are given in a few recorded steps, and at the sequences of features that models are given, and tells those whose last
places hold one and the same value in every row: padding that the longest sample of the batch does not need.

## Why it costs
Padded places pass through every layer like data; attention grows with their square. With reviews of at most 64 words padded to 192, two thirds of
every layer's work is for padding.

## Example
```python
def collate(samples):
    ids = torch.zeros(len(samples), 192, dtype=torch.long)
    for row, sample in enumerate(samples):
        ids[row, : len(sample)] = sample
    return ids
```

## Use instead
```python
def collate(samples):
    return torch.nn.utils.rnn.pad_sequence(samples, batch_first=True)
```

## Fix safety
No fix is applied: outputs at real places are the same only where the model honours its mask, and shapes change from batch to batch,
which compiled programs pay for; a few lengths (64, 128, 192) are a middle way.

## References
- PyTorch, `torch.nn.utils.rnn.pad_sequence`: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_sequence.html
- Hugging Face, padding and truncation: https://huggingface.co/docs/transformers/pad_truncation
"""

from __future__ import annotations

from pyrometer.quantity import format_percent
from pyrometer.rules.flowing import METHOD, of_step, removed
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR317",
    severity="warning",
    fix_class="tolerance",
    lever="shape_buckets",
    limits=(Limit("min_share", 0.12, "of the step: less does not repay shapes that change"),),
)


@RULE.in_evidence("dataflow")
def explain(case: Case) -> Findings:
    """Each lookup of such indices."""
    flow = case.dataflow
    assert flow is not None
    for number, fact in enumerate(flow.constant_tails):
        columns = fact.columns
        padding = fact.tail / columns
        share = of_step(case, fact.share) * padding
        if share < case.limit(RULE, "min_share"):
            continue
        place = place_of(case, fact.where)
        yield RULE.finding(
            message=f"rows of {columns} places{spoken(place)} end in the same value from place {columns - fact.tail:.0f} on, in all rows of a batch: "
            f"padding that no row of it needs takes {format_percent(share)} of the step",
            where=place,
            evidence={
                "columns": columns,
                "padded_columns": fact.tail,
                "fewest_padded_columns": fact.fewest,
                "num_steps": fact.num_steps,
            },
            links=[f"/dataflow/constant_tails/{number}"],
            cost=case.cost_of(
                share, f"{METHOD}, on tensors of {columns} columns, in proportion to the padding"
            ),
            gain=removed(
                case, fact.share * padding, "removal: padded columns in proportion; attention saves more"
            ),
            confidence="high",
            advice=f"Pad each batch to its longest row instead of to {columns}: `pad_sequence(rows, batch_first=True)` in the collate function, and batches "
            "of samples of like length.",
            resource="padding",
        )
