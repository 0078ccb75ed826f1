"""Convolutions run in NCHW layout, which the library has to convert.

## What it does
Finds convolutions over images in contiguous (NCHW) layout that take a good part of the step: on a GPU where a trace shows the
kernels that convert the layout back and forth, on a CPU in eager inference where convolutions with 16 channels or more take most
of the time.

## Why it costs
Tensor cores and oneDNN need the channels of a pixel to be contiguous (NHWC). With NCHW the library converts the inputs and
outputs of each convolution. On one CPU core a small ResNet took 0.61 to 0.73 of the time in channels_last, whole; a single convolution 0.8
to 0.95, and one with 3 channels 4 times as long.

## Example
```python
import torch

model = torch.nn.Conv2d(64, 64, 3)
output = model(torch.randn(8, 64, 56, 56))
```

## Use instead
Convert the model once and its inputs as they come; the operators in between keep the layout.
```python
import torch

model = torch.nn.Conv2d(64, 64, 3).to(memory_format=torch.channels_last)
output = model(torch.randn(8, 64, 56, 56).to(memory_format=torch.channels_last))
```

## Fix safety
Shapes and values stay the same, up to the rounding of another kernel. Code that calls `view` on activations fails on the other
layout; `reshape` works.

## References
- PyTorch, "Channels Last Memory Format in PyTorch": https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html
- NVIDIA, Convolutional Layers User's Guide, "Tensor Layouts": https://docs.nvidia.com/deeplearning/performance/dl-performance-convolutional/index.html
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyrometer.advice import Gain
from pyrometer.quantity import format_percent
from pyrometer.rules.kernels.patterns.operators import (
    CONVOLUTIONS,
    cost_of,
    index_of,
    on_device,
    place_of_operator,
    self_share,
)
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.trace.records.rank import RankReport
    from pyrometer.workload.program.record import ModuleFact, Program

RULE = declare(
    code="PYR506",
    severity="warning",
    fix_class="tolerance",
    lever="channels_last",
    limits=(
        Limit(
            "min_conversion_share",
            0.02,
            "conversions below a fiftieth of the time are not worth a change of layout",
        ),
        Limit("min_cpu_share", 0.3, "on a CPU other operators gain nothing, or lose"),
        Limit("min_channels", 16, "with fewer channels the layout was slower here"),
    ),
)

CONVERSION = re.compile(r"(?i)nchw_?(to|2)_?nhwc|nhwc_?(to|2)_?nchw")
SKETCH = "model = model.to(memory_format=torch.channels_last); x = x.to(memory_format=torch.channels_last)"
CPU_LOW, CPU_HIGH = 0.4, 0.05
"""Share of the convolutions' time that a small ResNet gained on one core, at best, and a single convolution."""


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """Conversions on a GPU; convolutions that dominate on a CPU."""
    trace = case.trace
    if trace is None:
        return
    if on_device(trace):
        yield from _on_gpu(case, trace)
    elif case.program is not None:
        yield from _on_cpu(case, trace, case.program)


def _on_gpu(case: Case, trace: RankReport) -> Findings:
    kernels = [(i, kernel) for i, kernel in enumerate(trace.top_kernels) if CONVERSION.search(kernel.name)]
    share = min(1.0, sum(total.share_of_span or 0.0 for _, total in kernels))
    if not kernels or share < case.limit(RULE, "min_conversion_share"):
        return
    calls = sum(total.calls for _, total in kernels)
    op = kernels[0][1].where.op
    place = place_of_operator(case, op or "")
    yield RULE.finding(
        message=f"Converting the layout of images takes {format_percent(share)} of the time, in {calls} kernels{spoken(place)}.",
        where=place,
        evidence={"conversions": calls, "share": share},
        links=[f"/trace/top_kernels/{i}" for i, _ in kernels],
        cost=cost_of(case, share, "device time of the kernels that convert"),
        gain=Gain(
            ratio_low=1 - share, ratio_high=1 - share / 2, method="removal of the conversions; some may stay"
        ),
        confidence="high",
        advice="Convert the model and its inputs to channels_last once; the operators in between keep it.",
        sketch=SKETCH,
        resource="copy:layout",
    )


def _on_cpu(case: Case, trace: RankReport, program: Program) -> Findings:
    share = self_share(trace, CONVOLUTIONS)
    convolutions = [module for module in program.modules if module.type_name == "Conv2d"]
    wide = [
        convolution
        for convolution in convolutions
        if _channels(convolution) >= case.limit(RULE, "min_channels")
    ]
    settled = any(module.channels_last for module in program.modules) or any(
        tensor.channels_last for tensor in program.inputs
    )
    if (
        program.kind != "inference"
        or program.compiled
        or settled
        or len(wide) < 2
        or len(wide) * 2 < len(convolutions)
        or share < case.limit(RULE, "min_cpu_share")
    ):
        return
    yield RULE.finding(
        message=f"{len(convolutions)} convolutions run in NCHW and take {format_percent(share)} of the time; oneDNN prefers channels_last.",
        where=place_of_operator(case, next(op.name for op in trace.top_ops if op.name in CONVOLUTIONS)),
        evidence={"convolutions": len(convolutions), "wide": len(wide), "share": share},
        links=[index for index in [index_of(trace, CONVOLUTIONS)] if index is not None],
        cost=cost_of(case, share, "own time of convolutions"),
        gain=Gain(
            ratio_low=1 - share * CPU_LOW,
            ratio_high=1 - share * CPU_HIGH,
            method="bound: what channels_last brought a small ResNet, and a single convolution, on one core",
        ),
        confidence="medium",
        advice="Try channels_last for the model and its inputs, and keep it if it is faster here.",
        sketch=SKETCH,
        resource="layout",
    )


def _channels(fact: ModuleFact) -> int:
    """Channels that each group reads; a depthwise convolution reads one."""
    channels, groups = fact.settings.get("in_channels"), fact.settings.get("groups")
    return channels // groups if isinstance(channels, int) and isinstance(groups, int) and groups else 0
