"""A batch is many small tensors.

## What it does
Counts the tensors that a step is given, where they go to a device, and carries the loader's own advice on packing them.

## Why it costs
Each tensor is collated, pinned, handed over between processes and copied on its own. A copy to a device takes some ten microseconds to begin,
whatever its size, so that a hundred small tensors take as long as one of several megabytes.

## Example
```python
import torch

batch = {f"feature_{i}": torch.randn(32) for i in range(100)}
on_device = {name: value.to("cuda") for name, value in batch.items()}
```

## Use instead
```python
import torch

names = [f"feature_{i}" for i in range(100)]
batch = torch.stack([torch.randn(32) for _ in names])
on_device = dict(zip(names, batch.to("cuda").unbind()))
```

## Fix safety
Left to a person: the same values as views of one tensor; writing into one of them in place writes into the common storage.

## References
- NVIDIA CUDA C++ Best Practices Guide, data transfer between host and device: https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/
"""

from __future__ import annotations

from statistics import median

from pyrometer.place import Place
from pyrometer.quantity import format_bytes
from pyrometer.rules.data.patterns.waiting import advised
from pyrometer.rules.rule import Case, Findings, Limit, declare

RULE = declare(
    code="PYR309",
    severity="info",
    fix_class="semantic",
    limits=(
        Limit("min_tensors", 16, "below it the copies take less than a fifth of a millisecond together"),
        Limit(
            "max_median_bytes",
            65536,
            "at 12 GB/s a larger tensor takes half as long to copy as the copy to begin",
        ),
    ),
)


@RULE.in_evidence("loading")
def explain(case: Case) -> Findings:
    """The advice to pack tensors, or lists of numbers."""
    yield from advised(RULE, case, "pack-tensors", "arrays-not-lists", cost=None)


@RULE.in_evidence("program")
def explain_inputs(case: Case) -> Findings:
    """Many small inputs of a model that is on a device."""
    program = case.program
    if program is None or program.device in {"cpu", "none"} or _is_advised(case):
        return
    sizes = [tensor.num_bytes for tensor in program.inputs]
    if len(sizes) < case.limit(RULE, "min_tensors"):
        return
    typical = median(sizes)
    if typical > case.limit(RULE, "max_median_bytes"):
        return
    yield RULE.finding(
        message=f"a step is given {len(sizes)} tensors, the median one of {format_bytes(typical)}",
        where=Place(),
        evidence={"num_tensors": len(sizes), "median_bytes": typical, "total_bytes": sum(sizes)},
        links=["/program/inputs"],
        confidence="medium",
        advice="Send tensors of one dtype as one, and take views of it on the device.",
        sketch="flat = torch.cat([t.reshape(-1) for t in tensors]).to(device, non_blocking=True)",
        resource="copy:H2D",
    )


def _is_advised(case: Case) -> bool:
    return bool(advised(RULE, case, "pack-tensors", "arrays-not-lists"))
