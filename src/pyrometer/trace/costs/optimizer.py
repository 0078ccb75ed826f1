"""Optimizer steps over lists of tensors: the foreach operators and the fused ones."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost

FOREACH: Mapping[str, int] = MappingProxyType(
    {
        "add": 1,
        "sub": 1,
        "mul": 1,
        "div": 1,
        "neg": 1,
        "abs": 1,
        "sqrt": 1,
        "rsqrt": 2,
        "exp": 1,
        "log": 1,
        "pow": 1,
        "sign": 1,
        "reciprocal": 1,
        "maximum": 1,
        "minimum": 1,
        "clamp_min": 1,
        "clamp_max": 1,
        "zero": 0,
        "lerp": 3,
        "addcmul": 3,
        "addcdiv": 3,
    }
)
"""FLOP per element."""

FUSED: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        "aten::_fused_adam_": (15, 4, 3),
        "aten::_fused_adamw_": (17, 4, 3),
        "aten::_fused_sgd_": (6, 3, 2),
        "aten::_fused_adagrad_": (8, 3, 2),
    }
)
"""FLOP per parameter; lists that are read, and of these how many are written (all but the gradients)."""


@cost(
    *(f"aten::_foreach_{name}{suffix}" for name in FOREACH for suffix in ("", "_")),
    source="per element of all lists",
    wraps=True,
)
def foreach(call: Call) -> Cost:
    """One pass over all lists; the first gives the size of the result."""
    first = call.several(0)
    name = call.name.removeprefix("aten::_foreach_").rstrip("_")
    others = [tensor for several in call.lists[1:3] if several for tensor in several]
    numel = sum(tensor.numel for tensor in first)
    size = sum(tensor.num_bytes for tensor in first)
    read = (0 if name == "zero" else size) + sum(tensor.num_bytes for tensor in others)
    return Cost(FOREACH[name] * numel, read, size, first[0].dtype if first else "float32")


@cost("aten::_foreach_norm", source="2 per element", wraps=True)
def foreach_norm(call: Call) -> Cost:
    """One number per tensor."""
    first = call.several(0)
    written = sum(tensor.item_bytes for tensor in first)
    flop = 2 * sum(tensor.numel for tensor in first)
    return Cost(
        flop, sum(tensor.num_bytes for tensor in first), written, first[0].dtype if first else "float32"
    )


@cost(*FUSED, source="per parameter: the update's definition")
def fused(call: Call) -> Cost:
    """`(parameters, gradients, states…)`."""
    per_element, num_read, num_written = FUSED[call.name]
    lists = [several for several in call.lists if several]
    if len(lists) < num_read:
        raise NotRecordedError("the lists of parameters, gradients and states")
    size = [sum(tensor.num_bytes for tensor in several) for several in lists[:num_read]]
    numel = sum(tensor.numel for tensor in lists[0])
    written = sum(size) - size[1] if num_written == num_read - 1 else sum(size)
    return Cost(per_element * numel, sum(size), written, lists[0][0].dtype)
