"""Operators that only move or make elements: copies, concatenations, fills, random numbers, and views that move nothing."""

from __future__ import annotations

import math

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.costs.tensors import Tensor

_FREE = """
empty empty_like empty_strided new_empty new_empty_strided resize_ resize_as_ set_ as_strided as_strided_
view _unsafe_view _reshape_alias view_as reshape_as expand expand_as t t_ transpose transpose_ permute
squeeze squeeze_ unsqueeze unsqueeze_ select slice narrow split split_with_sizes chunk unbind tensor_split
detach detach_ alias diagonal unfold movedim swapaxes mT mH T numpy_T view_as_real view_as_complex lift
lift_fresh result_type is_pinned record_stream resolve_conj resolve_neg is_nonzero size stride numel
broadcast_to unflatten cudnn_is_acceptable _has_compatible_shallow_copy_type output_nr _version
requires_grad_ retain_grad can_cast is_floating_point storage_offset _debug_has_internal_overlap to
_to_copy contiguous clone type_as reshape flatten ravel dropout feature_dropout zeros zeros_like ones
ones_like full full_like randn randn_like rand rand_like bernoulli new_zeros new_ones new_full
scalar_tensor eye cpu cuda
"""

FREE = frozenset(f"aten::{name}" for name in _FREE.split()) | frozenset(
    {"detach", "detach_", "torch::autograd::AccumulateGrad"}
)
"""Views, allocations, questions, and operators that leave all their work to others (`aten::to` to `aten::copy_`)."""


@cost("aten::copy_", "aten::_foreach_copy_", source="no FLOP; source read, destination written")
def copy(call: Call) -> Cost:
    """`(destination, source)`."""
    if call.name == "aten::_foreach_copy_":
        to, source = call.several(0), call.several(1)
        read, written = sum(tensor.num_bytes for tensor in source), sum(tensor.num_bytes for tensor in to)
        return Cost(0, read, written, to[0].dtype if to else "float32")
    target, origin = call.tensor(0), call.tensor(1)
    return Cost(0, origin.num_bytes, target.num_bytes, target.dtype)


@cost("aten::stack", "aten::concat", source="no FLOP; every part read, the result written", wraps=True)
@cost("aten::cat", "aten::_cat", source="no FLOP; every part read, the result written")
def concatenate(call: Call) -> Cost:
    """`(tensors, dim)`."""
    parts = call.several(0)
    moved = sum(part.num_bytes for part in parts)
    return Cost(0, moved, moved, parts[0].dtype if parts else "float32")


@cost(
    "aten::repeat",
    "aten::tile",
    "aten::repeat_interleave",
    source="no FLOP; input read, result written",
    wraps=True,
)
def repeat(call: Call) -> Cost:
    """`(input, repeats)`."""
    x = call.tensor(0)
    times = call.integer(1) if call.name == "aten::repeat_interleave" else math.prod(call.ints(1))
    return Cost(0, x.num_bytes, x.numel * times * x.item_bytes, x.dtype)


@cost(
    "aten::flip",
    "aten::roll",
    "aten::tril",
    "aten::triu",
    "aten::tril_",
    "aten::triu_",
    "aten::rot90",
    "aten::pixel_shuffle",
    "aten::pixel_unshuffle",
    "aten::channel_shuffle",
    "aten::im2col",
    "aten::col2im",
    source="no FLOP; input read, as much written",
)
def rearrange(call: Call) -> Cost:
    """The same elements elsewhere."""
    x = call.tensor(0)
    return Cost(0, x.num_bytes, x.numel * x.item_bytes, x.dtype)


@cost(
    "aten::constant_pad_nd",
    "aten::reflection_pad1d",
    "aten::reflection_pad2d",
    "aten::replication_pad2d",
    "aten::pad",
    source="no FLOP; input read, the padded result written",
    wraps=True,
)
def pad(call: Call) -> Cost:
    """`(input, (before, after) of the last dimension first, …)`."""
    x, amounts = call.tensor(0), call.ints(1)
    sizes = list(x.shape)
    for i, (before, after) in enumerate(zip(amounts[::2], amounts[1::2], strict=False)):
        if i < len(sizes):
            sizes[-1 - i] = max(sizes[-1 - i] + before + after, 0)
    return Cost(0, x.num_bytes, Tensor(tuple(sizes), x.dtype).num_bytes, x.dtype)


@cost(
    "aten::fill_",
    "aten::zero_",
    "aten::normal_",
    "aten::uniform_",
    "aten::bernoulli_",
    "aten::random_",
    "aten::exponential_",
    "aten::randperm",
    source="no FLOP; the tensor written",
)
def fill(call: Call) -> Cost:
    """`(tensor, …)`, written in place; drawing random numbers is not counted as arithmetic."""
    x = call.tensor(0)
    return Cost(0, 0, x.num_bytes, x.dtype)


@cost("aten::arange", "aten::linspace", source="1 per element; the result written", wraps=True)
def ramp(call: Call) -> Cost:
    """`(…, out)`: the sizes of the result as far as its tensor shows them."""
    tensors = call.all_tensors()
    if not tensors or not tensors[-1].numel:
        raise NotRecordedError("the size of the result")
    return Cost(tensors[-1].numel, 0, tensors[-1].num_bytes, tensors[-1].dtype)
