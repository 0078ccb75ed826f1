"""Kernels that a compiler generated: their arguments are the tensors that they read and write."""

from __future__ import annotations

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.naming.generated_kernels import ARITHMETIC, parse_generated


@cost(
    "triton", source="bytes: every tensor argument once; FLOP: one per arithmetic source operator and element"
)
def triton(call: Call) -> Cost:
    """Inductor's Triton kernels; the last tensor is taken as written, since arguments do not say who is read."""
    tensors = [tensor for tensor in call.all_tensors() if tensor.shape]
    if not tensors:
        raise NotRecordedError("the shapes of a generated kernel's arguments")
    found = parse_generated(call.name)
    arithmetic = sum(name in ARITHMETIC for name in found.source_ops) if found else 0
    numel = max(tensor.numel for tensor in tensors)
    return Cost(
        arithmetic * numel,
        sum(tensor.num_bytes for tensor in tensors[:-1]),
        tensors[-1].num_bytes,
        tensors[0].dtype,
        "vector",
        "every argument moved once, the last one written",
    )
