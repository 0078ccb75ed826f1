"""A dimension of a matrix product is not a multiple of the tensor cores' tile size.

## What it does
Finds, in a trace of a GPU, matrix products in 8-bit types, 16-bit types or TF32 with a size that lies innermost in memory and is
no multiple of 16 bytes, and tells whether they ran on tensor cores at all; and in source text vocabularies of `nn.Linear` and
`nn.Embedding` whose size is no multiple of 8.

## Why it costs
Tensor cores read 16 bytes at a time. Where a row does not begin at such a multiple (8 elements of a 16-bit type, 4 of float32),
the library takes a kernel that reads less at a time, or copies the matrix first. The classic case is GPT-2's vocabulary of
50,257: padded to 50,304 its last product has rows that are aligned.

## Example
```python
from torch import nn

head = nn.Linear(768, 50257, bias=False)
```

## Use instead
Pad the size to the next multiple of 64, and cut the results or mask the classes that do not exist.
```python
from torch import nn

VOCABULARY = 50257
head = nn.Linear(768, (VOCABULARY + 63) // 64 * 64, bias=False)
```

## Fix safety
The parameters get another shape, so that checkpoints must be padded, too. Logits of the added classes must be cut off or masked
before a softmax, otherwise they take part in it.

## References
- NVIDIA, Matrix Multiplication Background User's Guide, "Requirements to Use Tensor Cores": https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html
- PyTorch, Performance Tuning Guide, "Use mixed precision and AMP": https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.quantity import format_percent
from pyrometer.rules.kernels.patterns.operators import (
    MATRIX_PRODUCTS,
    cost_of,
    place_of_operator,
    place_of_point,
    roof_points,
)
from pyrometer.rules.match import Matches, match
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, Module, declare

if TYPE_CHECKING:
    from pyrometer.trace.reporting.totals import RoofPoint

RULE = declare(
    code="PYR504",
    severity="info",
    fix_class="semantic",
    limits=(
        Limit("min_share", 0.05, "a product below a twentieth of the step is not worth another shape"),
        Limit(
            "min_vocabulary",
            8192,
            "smaller tables are no vocabularies, and their sizes are what the task has",
        ),
    ),
)

SIZED = {"torch.nn.Linear": (1, "out_features"), "torch.nn.Embedding": (0, "num_embeddings")}
"""Position and name of the size of the vocabulary."""

ALIGNED = frozenset({"float16", "bfloat16", "tf32", "float8", "int8"})
"""Types of which products are fast only where sizes are multiples of 16 bytes; those in float64 are slow by nature."""


@RULE.in_source
def find(module: Module) -> Matches:
    """Vocabularies written as a number that is no multiple of 8."""
    for call in module.calls(*SIZED):
        position, name = SIZED[module.name_of(call.func) or ""]
        size = _size(module, call, position, name)
        if (
            size is None
            or size < module.limit(RULE, "min_vocabulary")
            or size % 8 == 0
            or module.region(call).test
        ):
            continue
        padded = (size + 63) // 64 * 64
        yield match(
            call,
            f"{name}={size} is no multiple of 8, which tensor cores need for full speed",
            advice=f"On a GPU pad it to {padded}, and cut or mask the {padded - size} added classes.",
            confidence="medium",
        )


def _size(module: Module, call: ast.Call, position: int, name: str) -> int | None:
    given = call.args[position] if len(call.args) > position else module.keyword(call, name)
    size = module.literal(given) if given is not None else None
    return size if isinstance(size, int) and not isinstance(size, bool) else None


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Products on a GPU with a size that is not aligned."""
    trace = case.trace
    if trace is None:
        return
    points = {(point.op, point.shapes): point for _, point in roof_points(trace, MATRIX_PRODUCTS)}
    for i, product in enumerate(trace.tensor_cores):
        share = min(1.0, product.time_ns / max(trace.span_ns, 1))
        size, multiple = product.odd_size, product.multiple
        if size is None or multiple is None or share < case.limit(RULE, "min_share"):
            continue
        if product.op not in MATRIX_PRODUCTS or product.arithmetic not in ALIGNED:
            continue
        point = points.get((product.op, product.shapes))
        place = place_of_operator(case, product.op) if point is None else place_of_point(case, point)
        padded = -(-size // multiple) * multiple
        used = product.tensor_core_ns / max(product.time_ns, 1)
        known = used or not product.unknown_core_ns
        yield RULE.finding(
            severity="warning",
            message=f"{product.op} on {product.shapes} takes {format_percent(share)} of the time"
            f"{'' if used or not known else ' without tensor cores'}, and its size {size} is no multiple of {multiple}{spoken(place)}.",
            where=place,
            evidence={
                "size": size,
                "multiple": multiple,
                "shapes": product.shapes,
                "arithmetic": product.arithmetic,
                "share": share,
                "tensor_core_share": used,
            },
            links=[f"/trace/tensor_cores/{i}"],
            cost=cost_of(
                case,
                share,
                "device time of this product; what of it the padding saves has to be measured",
            ),
            gain=None if used or not known else _without_tensor_cores(point, share),
            confidence="medium",
            advice=f"Pad {size} to {padded} (a multiple of 64 is better still) where the model is built, and cut the results.",
            resource=f"op:{product.op}",
        )


def _without_tensor_cores(point: RoofPoint | None, share: float) -> Gain | None:
    """What tensor cores would save at best; where they are used already, the roof says nothing of what padding saves."""
    if point is None or point.share_of_roof is None:
        return None
    return Gain(
        ratio_low=1 - share * max(0.0, 1 - point.share_of_roof),
        ratio_high=1.0,
        method="roofline: padded, the product is as fast as tensor cores and memory allow; at worst nothing changes",
    )
