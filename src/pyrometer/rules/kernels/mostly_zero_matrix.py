"""A matrix that is mostly zeros is multiplied as if it were full.

## What it does
Looks at the operands of matrix products in a few recorded steps, large ones in a sample, and tells those of which nine tenths are zeros:
adjacency matrices, masks of blocks, one-hot rows. What is computed from parameters may be zero today and not tomorrow, and is left
alone. The weights of an attention are zero where its mask leaves places out: fused attention whose mask leaves out four fifths is told, too.

## Why it costs
A dense product multiplies every zero. A graph of 2,400 nodes and 21,000 edges has 5.8 million entries, of which 0.4 % count. A one-hot row
times a table is one row of the table: an embedding reads it, the product reads the whole table for each.

## Example
```python
adjacency = torch.zeros(nodes, nodes)
adjacency[edges[1], edges[0]] = weights
mixed = adjacency @ features
```

## Use instead
```python
messages = weights[:, None] * features[edges[0]]
mixed = torch.zeros_like(features).index_add(0, edges[1], messages)
```
`torch.sparse_csr_tensor(…) @ features` does the same for a fixed matrix. Of one-hot rows: `table[codes]`, or `torch.nn.functional.embedding`.

## Fix safety
No fix is applied: sums are taken in another order, so that results differ by rounding. Sparse products pay where 95 % or more are zeros; blocks of
zeros are better left out as blocks, and so are those of a mask.

## References
- PyTorch, `torch.sparse`: https://docs.pytorch.org/docs/stable/sparse.html
- PyTorch, `torch.nn.functional.embedding`: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.quantity import Ratio, format_percent
from pyrometer.rules.flowing import METHOD, as_traced, of_step, removed
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.dataflow.report import MostlyZero

RULE = declare(
    code="PYR533",
    severity="warning",
    fix_class="tolerance",
    limits=(
        Limit("min_share", 0.1, "of the step: less does not repay another representation"),
        Limit(
            "min_zeros", 0.95, "of the entries: with fewer a sparse product is hardly faster than a dense one"
        ),
    ),
)

ONE_HOT = "Look the rows up instead: `torch.nn.functional.embedding(codes, table)`, where the codes are what became one-hot rows."
MASKED = (
    "Compute what the mask keeps: queries in blocks against the keys that they may see (`unfold` of keys and values for a window), or "
    "`torch.nn.attention.flex_attention` with a block mask, which leaves masked blocks out."
)
MASKED_WORST = 0.4
"""Of masked attention that goes at worst: blocks hold masked places, too, and their operators are not fused."""

SPARSE = (
    "Keep what is not zero: an edge list with `index_add`, or the matrix as `torch.sparse_csr_tensor` where it stays the same; blocks of zeros can be "
    "left out as slices."
)


@RULE.in_evidence("dataflow")
def explain(case: Case) -> Findings:
    """Each line with such a product."""
    flow = case.dataflow
    assert flow is not None
    for number, fact in enumerate(flow.mostly_zero):
        recorded = as_traced(case, fact.share, fact.where)
        share = of_step(case, recorded)
        few = fact.zero_share < case.limit(RULE, "min_zeros") and not fact.masked
        if few or share < case.limit(RULE, "min_share"):
            continue
        place = place_of(case, fact.where)
        yield RULE.finding(
            message=f"{_shown(fact)}{spoken(place)}, which takes {format_percent(share)} of the step",
            where=place,
            evidence={
                "share": share,
                "zero_share": fact.zero_share,
                "shape": fact.shape,
                "one_hot": fact.one_hot,
                "masked": fact.masked,
            },
            links=[f"/dataflow/mostly_zero/{number}"],
            cost=case.cost_of(share, METHOD),
            gain=_gain(case, fact, recorded),
            confidence="high" if fact.one_hot else "medium",
            advice=ONE_HOT if fact.one_hot else MASKED if fact.masked else SPARSE,
            resource=f"dense:{place.text}",
        )


def _shown(fact: MostlyZero) -> str:
    size, zeros = " × ".join(f"{size:,}" for size in fact.shape), format_percent(fact.zero_share, 3)
    if fact.masked:
        return f"attention computes all places of its mask of {size}, which leaves out {zeros} of them,"
    return f"a dense matrix of {size} with {zeros} zeros{' (one-hot rows)' if fact.one_hot else ''} is multiplied"


def _gain(case: Case, fact: MostlyZero, share: Ratio) -> Gain:
    if fact.masked:
        told = (
            "removal: the attention to what the mask leaves out; at worst blocks bring less than half of that"
        )
        return removed(case, share, told, best=fact.zero_share, worst=MASKED_WORST * fact.zero_share)
    told = (
        "removal: the products; at worst half of their time stays, as sparse ones move more for each number"
    )
    return removed(case, share, told, best=0.85, worst=0.5)
