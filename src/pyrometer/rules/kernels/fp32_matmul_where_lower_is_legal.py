"""Matrix products and convolutions run in float32 where the hardware has a faster legal precision.

## What it does
Finds matrix products and convolutions in float32 that are limited by arithmetic and take a good part of the step: on a GPU
those whose kernels do not use tensor cores although it has TF32 or 16-bit ones, on a CPU those of a program without autocast
where the processor has instructions for bfloat16.

## Why it costs
Matrix units do several times as many multiplications of shorter numbers: by NVIDIA's datasheet an A100 does 19.5 TFLOP/s in
float32, 156 in TF32 and 312 in bfloat16. On one core of a CPU with AVX512-BF16 a product of 1024×1024 matrices took 0.23 of
its float32 time, and a small ResNet under autocast 0.6 to 0.7. Without such instructions bfloat16 is slower than float32.

## Example
```python
import torch

model = torch.nn.Linear(4096, 4096, device="cuda")
output = model(torch.randn(4096, 4096, device="cuda"))
```

## Use instead
Allow TF32, which keeps float32's range and rounds to 10 bits of mantissa, or compute the forward pass in bfloat16.
```python
import torch

torch.set_float32_matmul_precision("high")
model = torch.nn.Linear(4096, 4096, device="cuda")
with torch.autocast("cuda", dtype=torch.bfloat16):
    output = model(torch.randn(4096, 4096, device="cuda"))
```

## Fix safety
Results change within a tolerance: TF32 has about three decimal digits, bfloat16 two to three. Compare a metric of the task.

## References
- PyTorch, CUDA semantics, "TensorFloat-32 (TF32) on Ampere (and later) devices": https://docs.pytorch.org/docs/stable/notes/cuda.html
- PyTorch, Automatic Mixed Precision package: https://docs.pytorch.org/docs/stable/amp.html
- NVIDIA, A100 Tensor Core GPU datasheet: https://www.nvidia.com/en-us/data-center/a100/
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from pyrometer.advice import Gain
from pyrometer.quantity import format_percent, significant
from pyrometer.rules.kernels.patterns.devices import datasheet, lower_precisions
from pyrometer.rules.kernels.patterns.operators import (
    CONVOLUTIONS,
    MATRIX_PRODUCTS,
    SINGLE,
    cost_of,
    dtypes_of,
    on_device,
    place_of_operator,
    roof_points,
    span_share,
)
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.trace.records.rank import RankReport
    from pyrometer.trace.reporting.totals import RoofPoint

RULE = declare(
    code="PYR501",
    severity="warning",
    fix_class="tolerance",
    lever="tf32",
    limits=(
        Limit("min_share", 0.1, "below a tenth of the step the best case gains less than a tenth"),
        Limit("min_cpu_share", 0.3, "on a CPU autocast also costs casts, so that more must be at stake"),
        Limit("min_intensity", 20, "FLOP per byte; with fewer a CPU waits for memory, not for arithmetic"),
        Limit("min_call_s", 1e-4, "below 0.1 ms a call on a CPU the casts outweigh what the product gains"),
    ),
)

MATRIX_WORK = MATRIX_PRODUCTS | CONVOLUTIONS
SINGLE_KERNEL = re.compile(r"sgemm|scudnn")
"""Names of kernels of NVIDIA's libraries that multiply float32 on the vector units."""

LEVERS = {"tf32": "tf32", "bfloat16": "autocast_bf16"}
CPU_BEST = 0.23
"""New over old time of a product of 1024×1024 matrices on one core with AVX512-BF16."""


class Found(NamedTuple):
    """Float32 matrix work."""

    share: float
    op: str
    links: list[str]
    sure: bool
    """The types and shapes were recorded; else they are told by the kernels' names."""


@RULE.in_evidence("trace")
def explain(case: Case) -> Findings:
    """One finding about all float32 matrix work of the step."""
    trace = case.trace
    if trace is None:
        return
    if on_device(trace):
        yield from _on_gpu(case, trace)
    elif case.program is not None and case.program.settings.get("cpu_bf16"):
        yield from _on_cpu(case, trace)


def _on_gpu(case: Case, trace: RankReport) -> Findings:
    peaks = datasheet(trace)
    faster = lower_precisions(peaks) if peaks is not None else {}
    hit = _without_matrix_units(trace)
    if peaks is None or not faster or hit is None or hit.share < case.limit(RULE, "min_share"):
        return
    best = next(iter(faster))
    place = place_of_operator(case, hit.op)
    yield RULE.finding(
        message=f"Matrix products in float32 without tensor cores take {format_percent(hit.share)} of the time, mostly "
        f"{hit.op}{spoken(place)}; {peaks.device} does {significant(faster[best], 2)}× as many in {best}.",
        where=place,
        evidence={"share": hit.share, **{f"{name}_over_float32": ratio for name, ratio in faster.items()}},
        links=hit.links,
        cost=cost_of(case, hit.share, "device time of float32 kernels outside of matrix units"),
        gain=Gain(
            ratio_low=1 - hit.share * (1 - 1 / faster[best]),
            ratio_high=1.0,
            method=f"roofline: the rate of {best} over that of float32, by {peaks.source}",
        ),
        lever=LEVERS.get(best),
        confidence="high" if hit.sure else "medium",
        advice="Allow TF32 for products that need no more than about three digits, or run the forward pass under "
        "torch.autocast; compare a metric of the task."
        if best == "tf32"
        else f"Run the forward pass under torch.autocast in {best}, a training in float16 with a GradScaler; compare a metric "
        "of the task.",
        rewrite='torch.set_float32_matmul_precision("high")'
        if best == "tf32"
        else f'torch.autocast("cuda", dtype=torch.{best})',
        resource=f"op:{hit.op}",
    )


def _without_matrix_units(trace: RankReport) -> Found | None:
    """Kernels of float32 products that run on the vector units, and are limited by arithmetic as far as shapes tell."""
    recorded = {point.op for _, point in roof_points(trace, MATRIX_WORK) if point.dtypes}
    ops = {
        point.op
        for _, point in roof_points(trace, MATRIX_WORK)
        if point.bound == "compute" and dtypes_of(point) <= SINGLE
    } & recorded
    kernels = [
        (i, kernel)
        for i, kernel in enumerate(trace.top_kernels)
        if kernel.category in {"gemm", "conv"}
        and kernel.tensor_cores is False
        and (
            kernel.where.op in ops or (SINGLE_KERNEL.search(kernel.name) and kernel.where.op not in recorded)
        )
    ]
    if not kernels:
        return None
    share = sum(kernel.share_of_span or 0.0 for _, kernel in kernels)
    links = [f"/trace/top_kernels/{i}" for i, _ in kernels]
    sure = all(kernel.where.op in ops for _, kernel in kernels)
    return Found(min(1.0, share), kernels[0][1].where.op or "", links, sure)


def _on_cpu(case: Case, trace: RankReport) -> Findings:
    program = case.program
    if program is None or program.autocast_dtype is not None or program.compiled:
        return
    points = [
        (i, point)
        for i, point in roof_points(trace, MATRIX_WORK)
        if dtypes_of(point) <= SINGLE
        and (point.intensity or 0.0) >= case.limit(RULE, "min_intensity")
        and point.time_ns >= point.calls * case.limit(RULE, "min_call_s") * 1e9
    ]
    share = min(1.0, sum(span_share(trace, point) for _, point in points))
    if not points or share < case.limit(RULE, "min_cpu_share"):
        return
    op = _longest(points)
    place = place_of_operator(case, op)
    yield RULE.finding(
        severity="info",  # a chance, and no fault: what it brings depends on the casts, and results change
        scope="general",
        message=f"Matrix products in float32 take {format_percent(share)} of the time, mostly {op}{spoken(place)}, and this "
        "processor has instructions for bfloat16.",
        where=place,
        evidence={"share": share},
        links=[
            f"/trace/roofline/{next(i for i, point in points if point.op == op)}",
            "/program/settings/cpu_bf16",
        ],
        cost=cost_of(case, share, "operators' own time in the trace"),
        gain=Gain(
            ratio_low=1 - share * (1 - CPU_BEST),
            ratio_high=1.0,
            method="bound: products of large matrices took 0.23 of their float32 time on one core with AVX512-BF16",
        ),
        lever="autocast_bf16",
        confidence="medium",
        advice="Try the forward pass under torch.autocast in bfloat16; the casts cost time, too, so measure it, and compare a "
        "metric of the task.",
        rewrite='torch.autocast("cpu", dtype=torch.bfloat16)',
        resource=f"op:{op}",
    )


def _longest(points: list[tuple[int, RoofPoint]]) -> str:
    """The operator that takes the most time over all its shapes."""
    spent: Counter[str] = Counter()
    for _, point in points:
        spent[point.op or ""] += point.time_ns
    return max(spent, key=lambda op: spent[op])
