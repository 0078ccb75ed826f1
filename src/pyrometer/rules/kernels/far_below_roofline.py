"""An operator takes far longer than the device needs for its arithmetic and its memory traffic.

## What it does
Names the operator, with its shapes, that takes a good part of the step and reaches only a small share of what the machine
allows at its ratio of arithmetic to memory traffic. It needs the machine's measured peaks, or a device that is known. On a CPU it is
silent where others kept the machine busy, or the profiler made the step much longer: then the time is not the operator's.

## Why it costs
At best an operator takes the longer of its FLOP over the peak and its bytes over the bandwidth. What it takes beyond that goes
into something else: shapes that do not fill the device, memory that is read in a bad order, a layout that is converted, a slow
implementation. On one CPU core adding a transposed matrix of 2048×2048 took 28 times as long as adding it as it lies in memory.

## Example
```python
import torch

x, y = torch.randn(2048, 2048), torch.randn(2048, 2048)
z = x + y.t()
```

## Use instead
Give the operator shapes, a layout and a type for which there is a fast implementation; here, keep `y` as it is read.
```python
import torch

x, y = torch.randn(2048, 2048), torch.randn(2048, 2048)
z = x + y
```

## Fix safety
There is no fix that holds for all operators; each change has to be compared for its results.

## References
- Williams, Waterman, Patterson, "Roofline: an insightful visual performance model for multicore architectures": https://doi.org/10.1145/1498765.1498785
- NVIDIA, Deep Learning Performance Guide, "GPU Performance Background": https://docs.nvidia.com/deeplearning/performance/dl-performance-gpu-background/index.html
"""

from __future__ import annotations

from pyrometer.quantity import format_percent, format_seconds
from pyrometer.rules.kernels.patterns.operators import (
    CONVOLUTIONS,
    MATRIX_PRODUCTS,
    POINTWISE,
    cost_of,
    module_words,
    place_of_point,
    roof_points,
    shapes_of,
    span_share,
)
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.untraced import stretch, untraced

RULE = declare(
    code="PYR503",
    severity="info",
    scope="symptom",
    fix_class="semantic",
    limits=(
        Limit("min_share", 0.1, "an operator below a tenth of the step is not where to begin"),
        Limit(
            "max_share_of_roof",
            0.3,
            "good implementations reach half and more of a measured peak at large sizes",
        ),
        Limit(
            "max_disturbed",
            0.1,
            "of the CPUs, that others used meanwhile: peaks were taken on a machine that was free",
        ),
        Limit(
            "max_stretch",
            1.5,
            "traced over untraced step: beyond that the trace tells more of the profiler than of operators",
        ),
        Limit("min_call_s", 2e-5, "shorter calls are dominated by what any call costs"),
    ),
)

STREAMING = frozenset(
    ["aten::sum", "aten::mean", "aten::_softmax", "aten::_log_softmax", "aten::native_layer_norm", "aten::native_batch_norm",
     "aten::copy_", "aten::cat"]
)  # fmt: skip
COMPARABLE = MATRIX_PRODUCTS | CONVOLUTIONS | POINTWISE | STREAMING
"""Operators whose least work is also what a good implementation does: a sort or a gather needs far more."""

MOST = 3


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """The operators that are furthest from what they could reach, the most time first."""
    trace = case.trace
    if trace is None or _is_disturbed(case):
        return
    told = 0
    for i, point in roof_points(trace, COMPARABLE):
        share, reached = span_share(trace, point), point.share_of_roof
        if reached is None or point.bound not in {"compute", "memory"} or told == MOST:
            continue
        call_s = point.time_ns * 1e-9 / max(point.calls, 1)
        if (
            share < case.limit(RULE, "min_share")
            or reached > case.limit(RULE, "max_share_of_roof")
            or call_s < case.limit(RULE, "min_call_s")
        ):
            continue
        told += 1
        op = point.op or ""
        place = place_of_point(case, point)
        limited = "arithmetic" if point.bound == "compute" else "memory bandwidth"
        yield RULE.finding(
            message=f"{op} on {_shapes(shapes_of(point))} takes {format_percent(share)} of the time and reaches "
            f"{format_percent(reached, 2)} of what {limited} allows{module_words(case, place) or spoken(place)}.",
            where=place,
            evidence={
                "share_of_roof": reached,
                "bound": point.bound,
                "calls": point.calls,
                "shapes": point.shapes,
                "seconds_per_call": call_s,
                "peaks": trace.utilisation.peaks_source,
            },
            links=[f"/trace/roofline/{i}"],
            cost=cost_of(case, share, "its own time in the trace"),
            gain=untraced(case, share).gain(
                "roofline: at best as fast as the peaks allow, at worst no faster",
                best=1 - reached,
                worst=0.0,
            ),
            confidence="medium",
            advice=f"One call takes {format_seconds(call_s)} where {format_seconds(call_s * reached)} would do: look at its "
            "shapes, at the strides of what it reads, and at its type.",
            resource=f"op:{op}",
        )


def _is_disturbed(case: Case) -> bool:
    """Whether the time of operators on a CPU may be that of other programs, or the profiler's."""
    if case.trace is None or case.trace.device_busy_ns:
        return False
    state = case.measurement.conditions if case.measurement is not None else None
    others = 0.0 if state is None else (state.competing_load or 0.0) / state.logical_cpus
    stolen = 0.0 if state is None else state.steal_share or 0.0
    return max(others, stolen) > case.limit(RULE, "max_disturbed") or stretch(case) > case.limit(
        RULE, "max_stretch"
    )


def _shapes(shapes: list[list[int]]) -> str:
    return ", ".join("×".join(map(str, shape)) for shape in shapes[:3]) or "scalars"
