"""Memory that operators of the CPU take for themselves while they run, where it is large beside their results.

Fitted to what the allocator noted on torch 2.13 with oneDNN; without such a row an operator is taken to need none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pyrometer.memory.prediction.corrections import padded_row
from pyrometer.quantity import Bytes

_BLOCK = 16
"""Channels that oneDNN lays side by side."""

_FIXED = 4664
"""What every LSTM layer takes beside the parts that grow."""


def workspace_bytes(operator: str, arguments: Sequence[Any], results: Sequence[Any]) -> Bytes:
    """Scratch bytes of one call of an operator on the CPU; 0 for those without a row.

    Args:
        operator: its name, such as `aten.mm.default`.
        arguments: flat.
        results: flat.
    """
    row = _ROWS.get(operator)
    if row is None or arguments[0].device.type != "cpu":
        return 0
    return row(arguments, results)


def _lstm_forward(arguments: Sequence[Any], results: Sequence[Any]) -> Bytes:
    """Weights in the layout of the kernel, and the gates where no workspace takes them."""
    inputs, (hidden, gates, width) = arguments[0], _sizes(arguments)
    steps, batch, _ = inputs.shape
    size = inputs.element_size()
    weights = (width + hidden) * padded_row(gates, size) * size
    scratch = batch * padded_row(gates, 4) * 4 + _FIXED
    trains = len(results) > 3 and results[3].numel() > 0
    if size == 4 or not trains:
        scratch += steps * batch * padded_row(gates, size) * size
    if not trains:
        widest = padded_row(max(width, hidden), size) - padded_row(hidden, size)
        scratch += 2 * (steps + 1) * batch * widest * size
    return int(weights + scratch)


def _lstm_backward(arguments: Sequence[Any], _results: Sequence[Any]) -> Bytes:
    """Weights in the layout of the kernel; in low precision also their gradients, and the input's, in float32."""
    inputs, (hidden, gates, width) = arguments[0], _sizes(arguments)
    steps, batch, _ = inputs.shape
    size = inputs.element_size()
    weights = (width + hidden) * padded_row(gates, size) * size
    scratch = batch * padded_row(gates, 4) * 4 + _FIXED
    if size == 4:
        return int(weights + scratch + steps * batch * padded_row(gates, 4) * 4)
    return int(weights + scratch + (width + hidden) * gates * 4 + steps * batch * width * 4)


def _attention(arguments: Sequence[Any], results: Sequence[Any]) -> Bytes:
    """The fused attention of inference: projections of all three, the scores, and the mixed values."""
    query, heads = arguments[0], arguments[4]
    values, scores = _attended(query, heads)
    with_weights = len(arguments) <= 10 or bool(arguments[10])
    given = sum(_nbytes(one) for one in results)
    during = max(5 * values, 3 * values + given) if with_weights else 3 * values
    return max(0, max(6 * values, during + scores) - given)


def _encoder_layer(arguments: Sequence[Any], results: Sequence[Any]) -> Bytes:
    """The fused encoder layer of inference: attention, or the inner width of the feed-forward part."""
    source, heads, inner = arguments[0], arguments[2], arguments[14].shape[0]
    values, scores = _attended(source, heads)
    feed_forward = values // source.shape[-1] * inner
    peak: Bytes = max(6 * values, 3 * values + scores, 2 * values + feed_forward)
    return max(0, peak - _nbytes(results[0]))


def _convolution(arguments: Sequence[Any], results: Sequence[Any]) -> Bytes:
    """Operands in oneDNN's blocked layout: the input first, the result then; or the columns of a plain product."""
    inputs, weight, output = arguments[0], arguments[1], results[0]
    transposed = bool(arguments[3 + 3 * (weight.dim() - 2)])
    if not transposed and not _in_blocks(inputs, weight, arguments[-1], _strides(arguments, 3, weight)):
        return _columns(inputs, weight, output)
    if _is_channels_last(inputs):
        return _nbytes(weight)
    before = _blocked_input(inputs) + _nbytes(weight) + _blocked(output)
    return before if transposed else max(before - _nbytes(output), _blocked(output))


def _convolution_backward(arguments: Sequence[Any], results: Sequence[Any]) -> Bytes:
    """Gradient and operands in blocked layout: for the input's gradient first, then for the weights'."""
    grad, inputs, weight = arguments[:3]
    wants_input, groups, rank = bool(arguments[-3]), arguments[-4], weight.dim() - 2
    transposed = bool(arguments[-5 - rank])
    steps = _strides(arguments, len(arguments) - 5 - 4 * rank, weight)
    if not transposed and not _in_blocks(inputs, weight, groups, steps):
        return _columns(inputs, weight, grad)
    if _is_channels_last(inputs):
        return 2 * _nbytes(weight)
    done = sum(_nbytes(one) for one in results)
    for_input = _blocked(grad) + _nbytes(weight) + _blocked(inputs) if wants_input else 0
    for_weight = _nbytes(inputs) if wants_input else 0
    for_weight += _blocked_input(inputs) + _blocked(grad) + _nbytes(weight) + _reduction(grad, inputs, weight)
    return max(0, max(for_input, for_weight) - done)


def _in_blocks(inputs: torch.Tensor, weight: torch.Tensor, groups: int, steps: Sequence[int]) -> bool:
    """Whether oneDNN computes a convolution, by the rule in `aten/src/ATen/native/Convolution.cpp`."""
    available: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not available or inputs.dtype not in {torch.float32, torch.bfloat16}:
        return False
    kernel, batch = weight.shape[2:], inputs.shape[0]
    pointwise = all(size == 1 for size in kernel) and all(step == 1 for step in steps)
    if pointwise and batch < 16 and torch.get_num_threads() == 1:
        return False
    return bool(groups > 1 or min(kernel) > 3 or batch > 1 or inputs.numel() > 20480)


def _strides(arguments: Sequence[Any], at: int, weight: torch.Tensor) -> list[int]:
    """Stride and dilation of a convolution, in its flat arguments."""
    rank = weight.dim() - 2
    return [*arguments[at : at + rank], *arguments[at + 2 * rank : at + 3 * rank]]


def _columns(inputs: torch.Tensor, weight: torch.Tensor, output: torch.Tensor) -> Bytes:
    """Every patch of the input as a column, which a product with the weights needs; none for single points."""
    patch = weight.shape[2:].numel()
    return 0 if patch == 1 else _nbytes(inputs) // inputs.shape[2:].numel() * patch * output.shape[2:].numel()


def _reduction(grad: torch.Tensor, inputs: torch.Tensor, weight: torch.Tensor) -> Bytes:
    """In low precision: the weights' gradient in float32, and both operands of one sample transposed."""
    if inputs.element_size() == 4:
        return 0
    sample = (_nbytes(inputs) + _nbytes(grad)) // inputs.shape[0]
    return weight.numel() * 4 + sample * 17 // 16


def _is_channels_last(inputs: torch.Tensor) -> bool:
    """Whether the layout is one that oneDNN works in."""
    layout = {4: torch.channels_last, 5: torch.channels_last_3d}.get(inputs.dim())
    return layout is not None and inputs.is_contiguous(memory_format=layout) and not inputs.is_contiguous()


def _blocked(tensor: torch.Tensor) -> Bytes:
    """Bytes with the channels filled up to whole blocks."""
    channels = tensor.shape[1]
    return _nbytes(tensor) // channels * (-(-channels // _BLOCK) * _BLOCK)


def _blocked_input(tensor: torch.Tensor) -> Bytes:
    """Bytes of a reordered input; with few channels, such as images, it is read as it is."""
    return _blocked(tensor) if tensor.shape[1] >= _BLOCK else 0


def _attended(inputs: torch.Tensor, heads: int) -> tuple[Bytes, Bytes]:
    """Bytes of one tensor `[B, T, D]`, and of the scores `[B, heads, T, T]`."""
    batch, length = inputs.shape[0], inputs.shape[-2]
    return _nbytes(inputs), batch * heads * length * length * inputs.element_size()


def _nbytes(tensor: Any) -> Bytes:
    return tensor.numel() * tensor.element_size() if isinstance(tensor, torch.Tensor) else 0


def _sizes(arguments: Sequence[torch.Tensor]) -> tuple[int, int, int]:
    """Hidden size, length of the row of all gates, and width of the input, by the weights."""
    gates, width = arguments[1].shape
    return arguments[2].shape[1], gates, width


_ROWS: dict[str, Callable[[Sequence[Any], Sequence[Any]], Bytes]] = {
    "aten._native_multi_head_attention.default": _attention,
    "aten._transformer_encoder_layer_fwd.default": _encoder_layer,
    "aten.convolution.default": _convolution,
    "aten.convolution_backward.default": _convolution_backward,
    "aten.mkldnn_rnn_layer.default": _lstm_forward,
    "aten.mkldnn_rnn_layer_backward.default": _lstm_backward,
}
