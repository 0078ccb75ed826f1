"""Scaled dot-product attention, fused.

Counted are the matrix products alone; softmax, scale and dropout add a few per cent. A causal mask leaves out the
pairs that it hides, as fused kernels do.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.costs.tensors import Tensor

FORWARD = "2·B·H·pairs·(D + D_v): Q·Kᵀ and P·V over the pairs that the mask leaves"
BACKWARD = "2·B·H·pairs·(3·D + 2·D_v): Q·Kᵀ again, dP, dV, dQ, dK"


class Layout(NamedTuple):
    """Where an operator has its arguments."""

    causal: int  # position of the flag
    heads: int = 1  # dimension of heads in (B, H, S, D); 2 in (B, S, H, D)
    bottom_right: bool = False  # the last query sees all keys; else the first sees one
    lengths: int | None = None  # position of cumulative lengths of a packed batch, if that is possible


FORWARDS: Mapping[str, Layout] = MappingProxyType(
    {
        "aten::_scaled_dot_product_flash_attention": Layout(4),
        "aten::_scaled_dot_product_efficient_attention": Layout(6),
        "aten::_scaled_dot_product_cudnn_attention": Layout(6),
        "aten::_scaled_dot_product_flash_attention_for_cpu": Layout(4),
        "aten::_scaled_dot_product_fused_attention_overrideable": Layout(5),
        "aten::_flash_attention_forward": Layout(8, heads=2, bottom_right=True, lengths=3),
        "aten::_efficient_attention_forward": Layout(9, heads=2, lengths=4),
        "flash_attn::_flash_attn_forward": Layout(5, heads=2, bottom_right=True),
        "aiter::mha_fwd": Layout(5, heads=2, bottom_right=True),
        "aiter::fmha_v3_fwd": Layout(5, heads=2, bottom_right=True),
    }
)
"""Arguments begin with query, key and value."""

BACKWARDS: Mapping[str, Layout] = MappingProxyType(
    {
        "aten::_scaled_dot_product_flash_attention_backward": Layout(11, lengths=6),
        "aten::_scaled_dot_product_efficient_attention_backward": Layout(11),
        "aten::_scaled_dot_product_cudnn_attention_backward": Layout(14, lengths=9),
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward": Layout(7),
        "aten::_flash_attention_backward": Layout(11, heads=2, bottom_right=True, lengths=6),
        "aten::_efficient_attention_backward": Layout(14, heads=2, lengths=6),
    }
)
"""Arguments begin with the gradient, query, key and value."""

_OUTER = ("aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_efficient_attention")
_WRAPPERS = (*_OUTER, *(f"{name}_backward" for name in _OUTER))


def visible_pairs(queries: int, keys: int, *, causal: bool, bottom_right: bool = False) -> int:
    """How many pairs of query and key a causal mask leaves.

    >>> visible_pairs(4, 4, causal=True), visible_pairs(2, 4, causal=True, bottom_right=True), visible_pairs(4, 4, causal=False)
    (10, 7, 16)
    """
    if not causal:
        return queries * keys
    offset = keys - queries if bottom_right else 0
    first = max(0, -offset)  # queries before that see nothing
    full = min(queries, max(first, keys - offset))  # queries from there on see all keys
    growing = full - first
    return growing * (first + offset + 1) + growing * (growing - 1) // 2 + (queries - full) * keys


def _sizes(call: Call, first: int, layout: Layout) -> tuple[int, int, Tensor, Tensor, Tensor]:
    """Batch times heads, visible pairs, and the three operands."""
    if layout.lengths is not None and call.maybe(layout.lengths) is not None:
        raise NotRecordedError("the lengths of the sequences in a packed batch")
    q, k, v = (call.tensor(first + i, dims=4) for i in range(3))
    long = 3 - layout.heads
    pairs = visible_pairs(
        q.shape[long], k.shape[long], causal=call.boolean(layout.causal), bottom_right=layout.bottom_right
    )
    return q.shape[0] * q.shape[layout.heads], pairs, q, k, v


@cost("aten::scaled_dot_product_attention", source=FORWARD, wraps=True)
def attention(call: Call) -> Cost:
    """The operator that users call, where it does not dispatch to another."""
    return _forward(call, Layout(5))


@cost(*(name for name in FORWARDS if name in _WRAPPERS), source=FORWARD, wraps=True)
@cost(*(name for name in FORWARDS if name not in _WRAPPERS), source=FORWARD)
def fused_attention(call: Call) -> Cost:
    """Flash, memory-efficient and cuDNN attention."""
    return _forward(call, FORWARDS[call.name])


def _forward(call: Call, layout: Layout) -> Cost:
    heads, pairs, q, k, v = _sizes(call, 0, layout)
    flop = 2 * heads * pairs * (q.shape[3] + v.shape[3])
    written = q.numel // max(q.shape[3], 1) * v.shape[3] * q.item_bytes
    return Cost(flop, q.num_bytes + k.num_bytes + v.num_bytes, written, q.dtype, "matrix")


@cost(*(name for name in BACKWARDS if name in _WRAPPERS), source=BACKWARD, wraps=True)
@cost(*(name for name in BACKWARDS if name not in _WRAPPERS), source=BACKWARD)
def fused_attention_backward(call: Call) -> Cost:
    """Their backward, which calculates the scores again."""
    heads, pairs, q, k, v = _sizes(call, 1, BACKWARDS[call.name])
    flop = 2 * heads * pairs * (3 * q.shape[3] + 2 * v.shape[3])
    out = call.tensor(0)
    operands = q.num_bytes + k.num_bytes + v.num_bytes
    # grad and the forward's result are read beside the operands; their gradients are as large as they are.
    return Cost(flop, operands + 2 * out.numel * out.item_bytes, operands, q.dtype, "matrix")
