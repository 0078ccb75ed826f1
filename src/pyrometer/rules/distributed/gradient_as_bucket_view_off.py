"""DistributedDataParallel keeps each gradient twice.

## What it does
Reads the settings of the wrapped model, and tells the size of its gradients.

## Why it costs
Without `gradient_as_bucket_view` each gradient lies in the parameter's `.grad` and in the bucket that is sent, and is copied from
one to the other and back in every step: memory as large as the trainable parameters, and two passes over it.

## Example
```python
model = DistributedDataParallel(model)
```

## Use instead
```python
model = DistributedDataParallel(model, gradient_as_bucket_view=True)
```

## Fix safety
No fix is applied. Results are the same; `detach_()` on a gradient raises, and a gradient that the program keeps changes with the
next reduction.

## References
- PyTorch, DistributedDataParallel, "gradient_as_bucket_view": https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""

from __future__ import annotations

from pyrometer.advice import Cost, Gain
from pyrometer.place import Place
from pyrometer.quantity import format_bytes
from pyrometer.rules.distributed.patterns.wrapping import distributed_wrappers, gradient_bytes, rewrapped
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR605",
    severity="info",
    fix_class="semantic",
    lever="ddp_bucket_views",
    limits=(Limit("min_bytes", 1 << 20, "less memory than that is not worth a setting"),),
)


@RULE.in_evidence("program")
def explain(case: Case) -> Findings:
    """Wrapped models whose gradients and buckets are apart."""
    program = case.program
    size = gradient_bytes(program) if program is not None else 0
    if size < case.limit(RULE, "min_bytes"):
        return
    for index, wrapper in distributed_wrappers(case):
        if wrapper.settings.get("gradient_as_bucket_view") is False:
            yield RULE.finding(
                message=f"gradients are kept twice, in the parameters and in the buckets: {format_bytes(size)} more",
                where=Place(module=wrapper.path),
                evidence={"gradient_bytes": size},
                links=[f"/program/wrappers/{index}"],
                cost=Cost(bytes=size, method="size of the trainable parameters"),
                gain=Gain(saves_bytes=size, method="model: one copy of each gradient less"),
                confidence="high",
                advice="Set `gradient_as_bucket_view=True`; do not keep gradients from one step to the next.",
                rewrite=rewrapped(case, gradient_as_bucket_view=True),
                resource="peak:gradients",
            )
