"""Memory that operators of the CPU take for themselves while they run, where it is large beside their results.

Fitted to what the allocator noted on torch 2.13 with oneDNN; without such a row an operator is taken to need none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from pyrometer.memory.prediction.corrections import padded_row
from pyrometer.memory.private.onednn import computes_bfloat16, computes_in_tiles
from pyrometer.quantity import Bytes

_BLOCK = 16 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 8
"""Channels that oneDNN lays side by side: as many float32 as a register holds."""

_HALF = 8
"""Where fewer are laid side by side, so many are."""

_GRAD_OUTPUT = 10
"""Which argument of the LSTM's backward pass is the gradient of its output."""

_TILE_BYTES = 20 << 10
"""What the weights' gradient takes for tiles, beside the parts that grow."""

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
    """Weights in the layout of the kernel, where rows are padded both ways round, and a copy of gradients that lie apart.

    In low precision also the weights' gradients, and the input's, in float32.
    """
    inputs, (hidden, gates, width) = arguments[0], _sizes(arguments)
    steps, batch, _ = inputs.shape
    size = inputs.element_size()
    weights = (width + hidden) * padded_row(gates, size) * size
    scratch = batch * padded_row(gates, 4) * 4 + _FIXED
    if size == 4:
        turned = sum(gates * padded_row(row, 4) * 4 for row in (width, hidden) if padded_row(row, 4) != row)
        grad = arguments[_GRAD_OUTPUT]
        copied = _nbytes(grad) if isinstance(grad, torch.Tensor) and not grad.is_contiguous() else 0
        return int(weights + scratch + steps * batch * padded_row(gates, 4) * 4 + turned + copied)
    return int(weights + scratch + (width + hidden) * gates * 4 + steps * batch * width * 4)


def _attention(arguments: Sequence[Any], results: Sequence[Any]) -> Bytes:
    """The fused attention of inference: projections of all three, the scores, and the mixed values."""
    query, heads = arguments[0], arguments[4]
    values, scores = _attended(query, heads)
    with_weights = len(arguments) <= 10 or bool(arguments[10])
    given = sum(_nbytes(result) for result in results)
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
    transposed, groups = bool(arguments[3 + 3 * (weight.dim() - 2)]), arguments[-1]
    steps = _strides(arguments, 3, weight)
    if not _in_blocks(inputs, weight, groups, steps):
        return _columns(output, weight, inputs) if transposed else _columns(inputs, weight, output, least=2)
    if _is_channels_last(inputs):
        return _nbytes(weight)
    blocks = _Blocks.of(weight, groups)
    if blocks is None:
        return 0
    if not transposed:
        before = blocks.source(inputs) + blocks.source_weight() + blocks.whole(output)
        if inputs.dtype == torch.bfloat16 and computes_in_tiles():
            return before  # the blocked operands are still there when the result is copied out of its blocks
        return max(before, _nbytes(output) + blocks.whole(output)) - _nbytes(output)
    strided = max(steps[: weight.dim() - 2]) > 1
    bias = blocks.whole(output) if arguments[2] is not None and (not strided or blocks.depthwise) else 0
    return blocks.spread(inputs, output, strided=strided, beside=bias) - _nbytes(output)


def _convolution_backward(arguments: Sequence[Any], results: Sequence[Any]) -> Bytes:
    """Gradient and operands in blocked layout: for the input's gradient first, then for the weights'."""
    grad, inputs = arguments[:2]
    layout = _LAYOUTS[inputs.dim()] if _is_channels_last(inputs) else torch.contiguous_format
    copied = 0 if grad.is_contiguous(memory_format=layout) else _nbytes(grad)  # such as that of a sum
    taken: Bytes = _backward(arguments, results)
    return copied + taken


def _backward(arguments: Sequence[Any], results: Sequence[Any]) -> Bytes:
    grad, inputs, weight = arguments[:3]
    wants_input, groups, rank = bool(arguments[-3]), arguments[-4], weight.dim() - 2
    transposed = bool(arguments[-5 - rank])
    steps = _strides(arguments, len(arguments) - 5 - 4 * rank, weight)
    if not _in_blocks(inputs, weight, groups, steps):
        if transposed:
            return _columns(grad, weight, inputs, least=2) // int(inputs.shape[0])
        return _columns(inputs, weight, grad, least=2)
    if _is_channels_last(inputs):
        return 2 * _nbytes(weight)
    blocks = _Blocks.of(weight, groups)
    if blocks is None or (transposed and blocks.depthwise and max(steps[:rank]) > 1):
        return 0
    if not blocks.padded and max(steps) > 1:
        return 0  # computed in one of several ways
    # A transposed convolution is the other one read backwards: its gradient is what that one reads.
    source, target = (grad, inputs) if transposed else (inputs, grad)
    if not wants_input:
        first = 0
    elif transposed:
        first = blocks.source(grad) + blocks.source_weight() + blocks.whole(inputs)
        first = max(first, blocks.whole(inputs) + _nbytes(inputs))
    else:
        first = blocks.spread(grad, inputs, strided=max(steps[:rank]) > 1)
    for_weight = blocks.read_again(source) + blocks.whole(target) + blocks.source_weight()
    for_weight += _reduction(source, target, weight, groups)
    for_weight += _nbytes(inputs) if wants_input else 0
    return max(0, max(first, for_weight) - sum(_nbytes(result) for result in results))


class _Blocks(NamedTuple):
    """How oneDNN lays out the operands of one convolution.

    Attributes:
        weight: with the channels that are read second and those that are written first, as of no transposed one.
        depthwise: every channel by itself.
        padded: channels are filled up to whole blocks.
    """

    weight: torch.Tensor
    depthwise: bool
    padded: bool

    @classmethod
    def of(cls, weight: torch.Tensor, groups: int) -> _Blocks | None:
        """The layout; `None` for groups that oneDNN computes in other ways, of which nothing is known."""
        depthwise = groups > 1 and weight.shape[0] == groups and weight.shape[1] == 1
        if groups == 1 or depthwise:
            return cls(weight, depthwise, padded=True)
        whole = weight.shape[0] // groups % _HALF == 0 and weight.shape[1] % _HALF == 0
        return cls(weight, depthwise=False, padded=False) if whole else None

    def whole(self, tensor: torch.Tensor) -> Bytes:
        """Bytes with the channels filled up to whole blocks."""
        return _filled(tensor, 1, _BLOCK) if self.padded else _nbytes(tensor)

    def source(self, tensor: torch.Tensor) -> Bytes:
        """Bytes of a reordered input; with few channels, such as images, it is read as it is."""
        return self.whole(tensor) if tensor.shape[1] >= _BLOCK or self.depthwise else 0

    def read_again(self, tensor: torch.Tensor) -> Bytes:
        """Bytes of the input when the weights' gradient is computed, where smaller blocks serve too."""
        channels = tensor.shape[1]
        if self.depthwise or not self.padded or channels > _HALF:
            return self.whole(tensor)
        return _filled(tensor, 1, _HALF) if channels > 3 else 0

    def spread(self, read: torch.Tensor, made: torch.Tensor, *, strided: bool, beside: Bytes = 0) -> Bytes:
        """Operands and result where each value goes to many places: a transposed convolution, or a gradient.

        With strides the result is made as it is, copied, and copied again. `beside` is held meanwhile.
        """
        if strided and not self.depthwise:
            first = self.whole(read) if read.shape[1] > _HALF else _nbytes(read)
            return max(first + self.whole_weight() + _nbytes(made), 3 * _nbytes(made))
        done = self.whole(made)
        return done + max(self.whole(read) + self.whole_weight() + beside, _nbytes(made))

    def whole_weight(self) -> Bytes:
        """Bytes of the weights, filled up both ways."""
        if not self.padded:
            return _nbytes(self.weight)
        first = _filled(self.weight, 0, _BLOCK)
        ways = 1 if self.depthwise else -(-self.weight.shape[1] // _BLOCK) * _BLOCK / self.weight.shape[1]
        return round(first * ways)

    def source_weight(self) -> Bytes:
        """Bytes of the weights beside an input that may be read as it is."""
        few = self.padded and not self.depthwise and self.weight.shape[1] < _BLOCK
        return _filled(self.weight, 0, _BLOCK) if few else self.whole_weight()


def _filled(tensor: torch.Tensor, dim: int, block: int) -> Bytes:
    """Bytes with one dimension filled up to whole blocks."""
    size = tensor.shape[dim]
    return _nbytes(tensor) // size * (-(-size // block) * block)


def _in_blocks(inputs: torch.Tensor, weight: torch.Tensor, groups: int, steps: Sequence[int]) -> bool:
    """Whether oneDNN computes a convolution, by the rule in `aten/src/ATen/native/Convolution.cpp`."""
    available: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not available or inputs.dtype not in {torch.float32, torch.bfloat16}:
        return False
    if inputs.dtype == torch.bfloat16 and not computes_bfloat16():
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


def _columns(wide: torch.Tensor, weight: torch.Tensor, places: torch.Tensor, *, least: int = 1) -> Bytes:
    """Every patch of a tensor as a column, which a product with the weights needs.

    Args:
        wide: what the patches are of.
        weight: its kernel is as large as a patch.
        places: a tensor with one position per patch.
        least: points of a patch from which on it must be laid out.
    """
    patch = weight.shape[2:].numel()
    if patch < least:
        return 0
    return _nbytes(wide) // wide.shape[2:].numel() * patch * places.shape[2:].numel()


def _reduction(source: torch.Tensor, target: torch.Tensor, weight: torch.Tensor, groups: int) -> Bytes:
    """In low precision: the weights' gradient in float32, and both operands of one sample transposed.

    Threads that share samples out have such buffers each; those that share channels out have them in common.
    """
    if source.element_size() == 4:
        return 0
    threads, tiles = torch.get_num_threads(), computes_in_tiles()
    samples = source.shape[0]
    read, made = (_nbytes(tensor) // samples * 17 // 16 for tensor in (source, target))
    copies = threads
    if groups == 1:
        copies = (
            _copies_in_tiles(source, target, weight) if tiles else _copies_in_blocks(source, target, weight)
        )
    # In tiles, the next part of the input is transposed while one is multiplied.
    return copies * (weight.numel() * 4 + read * (2 if tiles else 1) + made) + (_TILE_BYTES if tiles else 0)


def _copies_in_tiles(source: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> int:
    """Among how many threads samples are shared out where AMX multiplies; measured, oneDNN does not tell."""
    threads, read, made = torch.get_num_threads(), source.shape[1], target.shape[1]
    in_reach = read >= made or weight.numel() * 4 > _nbytes(source) + _nbytes(target)
    blocks = -(-read // _BLOCK)
    parts = blocks // 2 if blocks % 2 == 0 else blocks
    return threads // math.gcd(parts, threads) if in_reach else threads


def _copies_in_blocks(source: torch.Tensor, target: torch.Tensor, weight: torch.Tensor) -> int:
    """The same without tiles: of all ways to share out samples and channels the one that oneDNN takes to touch least.

    After `balance` of its `jit_avx512_core_bf16_bwd_weights` kernel, where parts are of 16 channels.
    """
    threads, samples = torch.get_num_threads(), source.shape[0]
    reads, makes = (-(-tensor.shape[1] // _BLOCK) for tensor in (source, target))
    spread = (_nbytes(source) + _nbytes(target)) / (8 * weight.numel())
    read = source.numel() * max(reads / makes, 1.0) * (4 if spread < 1 else 1)
    made = target.numel() * max(makes / reads, 1.0)
    held = weight.numel() * max(spread, 1.0)

    def touched(ways: tuple[int, int, int]) -> float:
        sample, first, second = (
            -(-count // way) / count for count, way in zip((samples, reads, makes), ways, strict=True)
        )
        return read * sample * first + made * sample * second + held * first * second

    tried = (
        (shared, first, threads // shared // first)
        for shared in range(1, min(threads, samples) + 1)
        for first in range(1, min(threads // shared, reads) + 1)
    )
    return min(tried, key=lambda ways: (touched(ways), ways[0]))[0]


_LAYOUTS = {4: torch.channels_last, 5: torch.channels_last_3d}


def _is_channels_last(inputs: torch.Tensor) -> bool:
    """Whether the layout is one that oneDNN works in."""
    layout = _LAYOUTS.get(inputs.dim())
    return layout is not None and inputs.is_contiguous(memory_format=layout) and not inputs.is_contiguous()


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
