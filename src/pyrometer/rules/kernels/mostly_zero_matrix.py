"""A matrix that is mostly zeros is multiplied as if it were full.

## What it does
Looks at the operands of matrix products in a few recorded steps, large ones in a sample, and tells those of which nine tenths are zeros:
adjacency matrices, masks of blocks, one-hot rows. What is computed from parameters may be zero today and not tomorrow, and is left
alone.

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
zeros are better left out as blocks.

## References
- PyTorch, `torch.sparse`: https://docs.pytorch.org/docs/stable/sparse.html
- PyTorch, `torch.nn.functional.embedding`: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.embedding.html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyrometer.quantity import format_percent
from pyrometer.rules.flowing import METHOD, of_step, removed
from pyrometer.rules.places import place_of, spoken
from pyrometer.rules.registry import declare
from pyrometer.rules.rule import Limit

if TYPE_CHECKING:
    from pyrometer.rules.case import Case
    from pyrometer.rules.finding import Finding

RULE = declare(
    code="PYR533",
    name="mostly-zero-matrix",
    doc=__doc__,
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
SPARSE = (
    "Keep what is not zero: an edge list with `index_add`, or the matrix as `torch.sparse_csr_tensor` where it stays the same; blocks of zeros can be "
    "left out as slices."
)


@RULE.in_evidence("dataflow")
def explain(case: Case) -> Iterator[Finding]:
    """Each line with such a product."""
    flow = case.dataflow
    assert flow is not None
    for number, fact in enumerate(flow.mostly_zero):
        share = of_step(case, fact.share)
        if share < case.limit(RULE, "min_share") or fact.zero_share < case.limit(RULE, "min_zeros"):
            continue
        place = place_of(case, fact.where)
        size = " × ".join(f"{size:,}" for size in fact.shape)
        yield RULE.finding(
            message=f"a dense matrix of {size} with {format_percent(fact.zero_share, 3)} zeros{' (one-hot rows)' if fact.one_hot else ''} is "
            f"multiplied{spoken(place)}, which takes {format_percent(share)} of the step",
            where=place,
            evidence={
                "share": share,
                "zero_share": fact.zero_share,
                "shape": fact.shape,
                "one_hot": fact.one_hot,
            },
            links=[f"/dataflow/mostly_zero/{number}"],
            cost=case.cost_of(share, METHOD),
            gain=removed(
                case,
                fact.share,
                "removal: the products; at worst a third of them stays as sparse ones",
                best=0.95,
                worst=0.65,
            ),
            confidence="high" if fact.one_hot else "medium",
            advice=ONE_HOT if fact.one_hot else SPARSE,
            resource=f"dense:{place.text}",
        )
