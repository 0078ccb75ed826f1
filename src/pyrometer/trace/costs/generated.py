"""Kernels that a compiler generated: their arguments are the tensors that they read and write."""

from __future__ import annotations

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.naming.generated_kernels import ARITHMETIC, parse_generated

MAKES = frozenset(
    [
        "zeros",
        "ones",
        "full",
        "empty",
        "zeros_like",
        "ones_like",
        "full_like",
        "new_zeros",
        "new_ones",
        "new_full",
        "arange",
        "iota",
        "scalar_tensor",
        "fill",
        "inductor_random",
        "random_like",
    ]
)
"""Source operators that write tensors without reading any."""


@cost(
    "triton",
    source="bytes: every tensor argument once, one written in place twice; FLOP: one per arithmetic source operator and element",
)
def triton(call: Call) -> Cost:
    """Inductor's Triton kernels; the last tensor is taken as written, since arguments do not say who is read.

    What a kernel changes in place comes first (`in_out_ptr0`) and is read and written. It is seen where there is no other
    tensor, or where the last one of a pointwise kernel is too small to be its result.
    """
    tensors = [tensor for tensor in call.all_tensors() if tensor.shape]
    if not tensors:
        raise NotRecordedError("the shapes of a generated kernel's arguments")
    found = parse_generated(call.name)
    sources = found.source_ops if found else ()
    numel = max(tensor.numel for tensor in tensors)
    pointwise = found is not None and found.kind == "pointwise"
    in_place = (len(tensors) == 1 and not MAKES.issuperset(sources)) or (
        pointwise and tensors[-1].numel < numel == tensors[0].numel
    )
    read, written = (tensors, tensors[0]) if in_place else (tensors[:-1], tensors[-1])
    return Cost(
        sum(name in ARITHMETIC for name in sources) * numel,
        sum(tensor.num_bytes for tensor in read),
        written.num_bytes,
        tensors[0].dtype,
        "vector",
        "the first argument changed in place, the others read"
        if in_place
        else "every argument moved once, the last one written",
    )
