"""Convolutions of fixed shapes run without cuDNN autotuning.

## What it does
Finds programs on a GPU whose convolutions take a good part of the time with the same shapes in every step, while
`torch.backends.cudnn.benchmark` is off.

## Why it costs
cuDNN has several algorithms for a convolution and picks one by rules of thumb. With `benchmark` it times them at the first call of
each shape and keeps the fastest. With shapes that change, each new one is timed again, and that costs more than it brings.

## Example
```python
import torch

model = torch.nn.Conv2d(64, 64, 3, device="cuda")
```

## Use instead
```python
import torch

torch.backends.cudnn.benchmark = True
model = torch.nn.Conv2d(64, 64, 3, device="cuda")
```

## Fix safety
Another algorithm rounds differently, and which one is fastest may differ from run to run: do not use it where results must be
reproducible bit by bit. Some algorithms need more memory.

## References
- PyTorch, Performance Tuning Guide, "Enable cuDNN auto-tuner": https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html
- PyTorch, Reproducibility, "CUDA convolution benchmarking": https://docs.pytorch.org/docs/stable/notes/randomness.html
"""

from __future__ import annotations

from pyrometer.quantity import counted, format_percent
from pyrometer.rules.kernels.patterns.operators import (
    CONVOLUTIONS,
    cost_of,
    on_device,
    place_of_operator,
    roof_points,
    span_share,
)
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR513",
    severity="info",
    fix_class="tolerance",
    limits=(Limit("min_share", 0.2, "another algorithm saves a part of the convolutions' time at best"),),
)


@RULE.in_evidence("trace", "program")
def explain(case: Case) -> Findings:
    """Convolutions on CUDA whose shapes are the same in each step."""
    trace, program = case.trace, case.program
    if trace is None or program is None or not on_device(trace) or not program.device.startswith("cuda"):
        return
    settings = program.settings
    if (
        settings.get("cudnn_benchmark") is not False
        or settings.get("deterministic")
        or settings.get("cudnn_deterministic")
    ):
        return
    points = list(roof_points(trace, CONVOLUTIONS))
    share = min(1.0, sum(span_share(trace, point) for _, point in points))
    steps = len(trace.steps)
    fixed = steps > 1 and all(point.calls % steps == 0 for _, point in points)
    if not points or not fixed or share < case.limit(RULE, "min_share"):
        return
    place = place_of_operator(case, points[0][1].op or "")
    yield RULE.finding(
        message=f"Convolutions take {format_percent(share)} of the time{spoken(place)}, with the same shapes in each of "
        f"{counted(steps, 'step')}, and cuDNN does not time its algorithms.",
        where=place,
        evidence={"share": share, "num_shapes": len(points), "num_steps": steps},
        links=["/program/settings/cudnn_benchmark", f"/trace/roofline/{points[0][0]}"],
        cost=cost_of(case, share, "device time of convolutions"),
        confidence="medium",
        advice="Set torch.backends.cudnn.benchmark = True before the first step, where results need not be the same bit by bit.",
        rewrite="torch.backends.cudnn.benchmark = True",
        resource=f"op:{points[0][1].op}",
    )
