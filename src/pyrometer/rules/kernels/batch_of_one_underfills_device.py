"""A batch of one leaves most of the device idle.

## What it does
Finds programs on a GPU whose inputs have a leading dimension of one and whose kernels, weighted with their time, launch fewer
blocks than the device runs at once.

## Why it costs
A GPU runs thousands of threads at a time; a kernel for one sample often launches a few hundred. The rest of the device stays
idle, and a second sample in the same batch would cost next to nothing. The latency of a single request does not improve by
batching: what improves is how many a second there are.

## Example
```python
for request in queue:
    answers.append(model(request.unsqueeze(0)))
```

## Use instead
Collect what arrives within a short time into one batch; where there is only one at a time, record the step as a CUDA graph, so
that at least launching it costs nothing.
```python
batch = torch.stack([request for request in take(queue, at_most=16, within_s=0.005)])
answers.extend(model(batch))
```

## Fix safety
Samples of a batch are computed together: results differ within rounding, and batch norm in training mode sees other statistics.

## References
- NVIDIA, Deep Learning Performance Guide, "GPU Performance Background": https://docs.nvidia.com/deeplearning/performance/dl-performance-gpu-background/index.html
- PyTorch, CUDA semantics, "CUDA Graphs": https://docs.pytorch.org/docs/stable/notes/cuda.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyrometer.place import Place
from pyrometer.quantity import format_percent
from pyrometer.rules.kernels.patterns.operators import cost_of, on_device
from pyrometer.rules.rule import Case, Findings, Limit, declare

if TYPE_CHECKING:
    from pyrometer.workload.program.record import Program

RULE = declare(
    code="PYR505",
    severity="info",
    scope="symptom",
    fix_class="semantic",
    lever="batch_size",
    limits=(
        Limit("max_waves", 0.5, "above half a device, a second sample would not be free"),
        Limit("min_share", 0.2, "kernels must be a good part of the step: below it, launching is the matter"),
    ),
)


@RULE.in_evidence("trace", "program")
def explain(case: Case) -> Findings:
    """A batch of one whose kernels fill less than half of the device."""
    trace, program = case.trace, case.program
    if trace is None or program is None or not on_device(trace) or not has_batch_of_one(program):
        return
    known = [kernel for kernel in trace.top_kernels if kernel.waves is not None]
    total = sum(kernel.total_ns for kernel in known)
    share = sum(kernel.share_of_span or 0.0 for kernel in known)
    if not total or share < case.limit(RULE, "min_share"):
        return
    waves = sum((kernel.waves or 0.0) * kernel.total_ns for kernel in known) / total
    if waves >= case.limit(RULE, "max_waves"):
        return
    yield RULE.finding(
        message=f"With a batch of one, kernels fill {format_percent(waves, 2)} of the device, over {format_percent(share)} of "
        "the time.",
        where=Place(file=program.model_file, line=program.model_line),
        evidence={"waves": waves, "inputs": [f"{tensor.name} {tensor.shape}" for tensor in program.inputs]},
        links=["/trace/top_kernels", "/program/inputs/0"],
        cost=cost_of(case, min(1.0, share * (1 - waves)), "idle part of the device while these kernels run"),
        confidence="medium",
        advice="Batch several samples where more than one is at hand: the time per step hardly grows until the device is full. "
        "Where there is one at a time, try a CUDA graph.",
        resource="device:idle",
    )


def has_batch_of_one(program: Program) -> bool:
    """Whether each input with two dimensions or more has a leading one of size 1, and there is one."""
    batched = [tensor for tensor in program.inputs if len(tensor.shape) >= 2]
    return bool(batched) and all(tensor.shape[0] == 1 for tensor in batched)
