"""Which tensors are looked at as operators read and write them, and for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from pyrometer.dataflow.graph import Call, Ref, Value
from pyrometer.dataflow.sampling import (
    MOST_COUNTED,
    constant_tail,
    digest,
    distinct,
    is_one_hot,
    masked_share,
    sample,
    subnormal_share,
    zero_share,
)

PRODUCTS = frozenset(
    {
        "aten::mm",
        "aten::addmm",
        "aten::bmm",
        "aten::baddbmm",
        "aten::mv",
        "aten::addmv",
        "aten::_sparse_addmm",
    }
)
ATTENTION = "aten::_scaled_dot_product_"
"""Begins the names of fused attention; its mask is read after queries, keys and values."""

LOOKUPS = frozenset({"aten::embedding", "aten::_embedding_bag", "aten::_embedding_bag_forward_only"})
LOSSES = frozenset({"aten::nll_loss_forward", "aten::nll_loss2d_forward"})
MASKING = frozenset({"aten::mul", "aten::mul_", "aten::where", "aten::masked_fill", "aten::masked_fill_"})

LARGE = 1 << 14
"""Elements of a matrix; the zeros of smaller ones cost little."""

MOSTLY = 0.9
"""Share of zeros from which the rows are looked at, too."""

_PLAIN = {torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.nn.Parameter)}


def has_memory(tensor: object) -> bool:
    """Whether an object is a plain dense tensor with memory of its own or of another."""
    return (
        isinstance(tensor, torch.Tensor)
        and type(tensor) in _PLAIN
        and tensor.layout == torch.strided
        and not tensor.is_nested
        and tensor.device.type != "meta"
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)  # noqa: SLF001
    )


def look(call: Call, values: Sequence[Value], tensors: Mapping[int, torch.Tensor]) -> None:
    """Note what the elements of some tensors of a call tell.

    Args:
        call: the call that just ran.
        values: all so far.
        tensors: those of the values that it read and wrote.
    """
    for number in call.writes:
        if number in tensors and values[number].digest is None and values[number].numel:
            sampled = sample(tensors[number])
            values[number].digest = digest(sampled)
            values[number].subnormal_share = subnormal_share(sampled)
    if call.backward or call.optimizer:
        return
    if call.name in PRODUCTS:
        _look_at_operands(call, values, tensors)
    elif call.name.startswith(ATTENTION):
        _look_at_mask(call, values, tensors)
    elif call.name in LOOKUPS:
        _look_at_indices(call, values, tensors)
    elif call.name in LOSSES and isinstance(call.argument(1), Ref):
        target = tensors[call.arguments[1].value]
        call.kept = float((target != call.arguments[4]).float().mean()) if target.numel() else None
    elif call.name in MASKING:
        _look_at_factors(call, values, tensors)


def _look_at_factors(call: Call, values: Sequence[Value], tensors: Mapping[int, torch.Tensor]) -> None:
    for number in call.reads:
        value = values[number]
        if value.zero_share is None and not value.is_leaf and value.numel > 1 and number in tensors:
            value.zero_share = zero_share(tensors[number])


def look_at_input(value: Value, tensor: torch.Tensor) -> None:
    """Note how many columns of rows of indices, or places of sequences of features, hold the same value in all rows at their end."""
    is_sequence = tensor.dim() == 3 if tensor.is_floating_point() else tensor.dim() == 2
    if value.constant_tail is not None or not is_sequence or not 0 < tensor.numel() <= MOST_COUNTED:
        return
    ways = [tensor] if tensor.dim() == 2 else [tensor, tensor.transpose(1, 2)]
    tails = [(constant_tail(way), way.shape[1]) for way in ways]
    value.constant_tail, value.columns = max(tails, key=lambda tail: tail[0] / tail[1])


def _look_at_operands(call: Call, values: Sequence[Value], tensors: Mapping[int, torch.Tensor]) -> None:
    for number in call.reads:
        value = values[number]
        if value.zero_share is None and value.numel >= LARGE:
            value.zero_share = zero_share(tensors[number])
            value.is_one_hot = value.zero_share >= MOSTLY and is_one_hot(tensors[number])


def mask_of(call: Call) -> int | None:
    """The value that masks an attention; null where none does."""
    given = [argument for argument in call.arguments if isinstance(argument, Ref)]
    return given[3].value if call.name.startswith(ATTENTION) and len(given) > 3 else None


def _look_at_mask(call: Call, values: Sequence[Value], tensors: Mapping[int, torch.Tensor]) -> None:
    number = mask_of(call)
    if number is not None and values[number].masked_share is None and values[number].numel >= LARGE:
        values[number].masked_share = masked_share(tensors[number])


def _look_at_indices(call: Call, values: Sequence[Value], tensors: Mapping[int, torch.Tensor]) -> None:
    index = call.arguments[1]
    if not isinstance(index, Ref):
        return
    value, tensor = values[index.value], tensors[index.value]
    if value.distinct is None and tensor.numel() <= MOST_COUNTED:
        value.distinct = distinct(tensor)
    look_at_input(value, tensor)
