"""The loss scale keeps falling, and steps are skipped.

## What it does
Follows a GradScaler through the watched steps and speaks where every step was skipped, so that the scale is halved each time, or
where the scale has fallen below what keeps small gradients above the smallest float16 number.

## Why it costs
A skipped step has done its forward and backward pass and changes nothing. A scale that falls without end means that a gradient is
infinite or NaN whatever the scale is; on the way down, gradients that are too small for float16 become zero.

## Example
```python
scaler = torch.amp.GradScaler("cuda")
with torch.autocast("cuda", dtype=torch.float16):
    loss = criterion(model(inputs), targets)
scaler.scale(loss).backward()
```

## Use instead
bfloat16 has the range of float32 and needs no scale. Where float16 it must be, compute the part that overflows in float32.
```python
with torch.autocast("cuda", dtype=torch.bfloat16):
    loss = criterion(model(inputs), targets)
loss.backward()
```

## Fix safety
No fix is applied: bfloat16 has three bits less of precision than float16.

## References
- PyTorch, Automatic Mixed Precision examples: https://docs.pytorch.org/docs/stable/notes/amp_examples.html
- NVIDIA, Train With Mixed Precision: https://docs.nvidia.com/deeplearning/performance/mixed-precision-training/index.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.advice import Cost
from pyrometer.place import Place
from pyrometer.quantity import counted, significant
from pyrometer.rules.numerics.patterns.origins import cause, cure, story
from pyrometer.rules.places import place_of
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.numerics.report import NonFinite, NumericsReport

RULE = declare(
    code="PYR705",
    severity="warning",
    scope="symptom",
    fix_class="tolerance",
    lever="autocast_bf16",
    limits=(
        Limit(
            "min_steps", 4, "a new GradScaler begins at 65536 and halves two or three times in sound training"
        ),
        Limit(
            "min_scale", 128.0, "below it gradients of 1e-10, common in late training, are zero in float16"
        ),
    ),
)


@RULE.in_evidence("numerics")
def explain(case: Case) -> Findings:
    """A scale that falls in every step, or has fallen too far."""
    report = case.numerics
    scaling = report.scaling if report is not None else None
    if report is None or scaling is None or not scaling.skipped:
        return
    steps = len(scaling.scales)
    all_skipped = len(scaling.skipped) == steps >= case.limit(RULE, "min_steps")
    too_small = scaling.final_scale < case.limit(RULE, "min_scale") and len(scaling.skipped) > steps / 2
    if not (all_skipped or too_small):
        return
    origin = _origin(report)
    yield RULE.finding(
        message=(
            f"the loss scale falls from {significant(scaling.scales[0])} to {significant(scaling.final_scale)}: "
            f"{len(scaling.skipped)} of {counted(steps, 'step')} are skipped"
            + (f"; {story(origin)}" if origin is not None else "")
        ),
        where=place_of(case, cause(origin)) if origin is not None else Place(),
        evidence={
            "scales": scaling.scales,
            "final_scale": scaling.final_scale,
            "num_skipped": len(scaling.skipped),
            "num_steps": steps,
        },
        links=["/numerics/scaling"],
        cost=Cost(share=len(scaling.skipped) / steps, method="share of steps that change nothing"),
        confidence="high" if too_small else "medium",
        advice=(
            "Use bfloat16, which needs no scale, where the device has it. "
            + (
                cure(cause(origin))
                if origin is not None
                else "Otherwise find what overflows and compute it in float32."
            )
        ),
        sketch="torch.autocast(device_type, dtype=torch.bfloat16)",
    )


def _origin(report: NumericsReport) -> NonFinite | None:
    bad = report.gradients.non_finite if report.gradients is not None else []
    return next((gradient.origin for gradient in bad if gradient.origin is not None), None)
