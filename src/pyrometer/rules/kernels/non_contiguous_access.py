"""A large tensor is read in a non-contiguous order.

## What it does
Finds, in one observed step, elementwise functions that walk along their result in memory and thereby jump through an operand of
the same shape and another layout, such as `x + y.t()`, with tensors of 65,536 elements or more.

## Why it costs
Memory comes in lines of 64 bytes. Where neighbours in the result are far apart in the operand, each element fetches a line of its
own, of which one number is used. On one CPU core adding a transposed 512×512 matrix took 9 times as long as adding one in the
same layout, 2048×2048 28 times as long, and a softmax over the columns of a 2048×2048 matrix 8 times as long as over its rows.

## Example
```python
import torch

scores, bias = torch.randn(2048, 2048), torch.randn(2048, 2048)
total = scores + bias.t()
```

## Use instead
Make the tensor in the layout in which it is read, once, where it comes from. `.contiguous()` within the step only moves the cost:
the copy reads across the memory, too, and pays if the result is read several times.
```python
import torch

scores, bias = torch.randn(2048, 2048), torch.randn(2048, 2048).t().contiguous()
total = scores + bias
```

## Fix safety
Elementwise functions give the same values in every layout; sums may add up in another order.

## References
- PyTorch, Tensor Views: https://docs.pytorch.org/docs/stable/tensor_view.html
- NVIDIA, CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory": https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.joining import module_of
from pyrometer.rules.kernels.patterns.operators import cost_of, shapes_of
from pyrometer.rules.places import spoken
from pyrometer.rules.rule import Case, Findings, Limit, declare
from pyrometer.rules.untraced import untraced

if TYPE_CHECKING:
    from pyrometer.workload.program.record import StridedRead

RULE = declare(
    code="PYR507",
    severity="warning",
    fix_class="exact",
    limits=(
        Limit(
            "min_share",
            0.03,
            "where a trace is there, less than this of the step is not worth another layout",
        ),
    ),
)

MOST = 3
GAIN_LOW, GAIN_HIGH = 0.95, 0.5
"""Share of such a call's time that the right layout saved: at 2048×2048 more than 0.95, never less than half."""


@RULE.in_evidence("program")
def explain(case: Case) -> Findings:
    """The largest strided reads, one per line; with a trace those that take time."""
    program = case.program
    if program is None:
        return
    told: set[tuple[str | None, int | None]] = set()
    for i, read in enumerate(program.strided_reads):
        spot, share = (read.file, read.line), _share(case, read)
        if spot in told or len(told) == MOST or (share is not None and share < case.limit(RULE, "min_share")):
            continue
        told.add(spot)
        module = module_of(read.file, case.modules)
        place = Place(
            file=read.file if module is None else module.path, line=read.line, op=f"aten::{read.function}"
        )
        size = "×".join(map(str, read.shape))
        yield RULE.finding(
            severity="info" if share is None else "warning",
            message=f"{read.function} reads a tensor of {size} with strides {read.strides}{spoken(place)}: neighbours in the "
            f"result lie {max(read.strides)} elements apart in it{_takes(share)}.",
            where=place,
            evidence={
                "shape": size,
                "strides": str(read.strides),
                "calls_per_step": read.calls,
                "share": share,
            },
            links=[f"/program/strided_reads/{i}"],
            cost=None
            if share is None
            else cost_of(case, share, "own time of this operator with these shapes"),
            gain=None
            if share is None
            else untraced(case, share).gain(
                "bound: what the same layout saved of such calls on one core; making it there must cost nothing",
                best=GAIN_LOW,
                worst=GAIN_HIGH,
            ),
            confidence="high" if share is not None else "medium",
            advice="Make this tensor in the layout of the others where it comes from; if it is read several times in a step, "
            "`.contiguous()` once before the first.",
            resource=f"op:aten::{read.function}",
        )


def _takes(share: float | None) -> str:
    return "" if share is None else f", which takes {format_percent(share)} of the time"


def _share(case: Case, read: StridedRead) -> float | None:
    """What the operator with such a shape takes; None without a trace, or where the trace does not list it."""
    trace = case.trace
    if trace is None:
        return None
    names = {f"aten::{read.function}", f"aten::_{read.function}", f"aten::{read.function}_"}
    points = [point for point in trace.roofline if point.op in names and read.shape in shapes_of(point)]
    return min(1.0, sum(point.time_ns for point in points) / max(trace.span_ns, 1)) if points else 0.0
