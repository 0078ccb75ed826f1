"""Convolutions, counted as direct ones: algorithms that need less arithmetic (Winograd, FFT) may exceed a device's peak.

The addition of a bias and its gradient are left out, as by torch's own counter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.costs.tensors import Tensor

DIRECT = "2·N·C_out·(C_in/groups)·out pixels·kernel pixels; transposed: of in pixels"


class Geometry(NamedTuple):
    """How a kernel walks over its input."""

    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]
    transposed: bool = False
    output_padding: Sequence[int] = ()


def output_size(pixels: Sequence[int], kernel: Sequence[int], how: Geometry) -> tuple[int, ...]:
    """Pixels of the result in each dimension.

    >>> output_size((224, 224), (7, 7), Geometry((2, 2), (3, 3), (1, 1)))
    (112, 112)
    """
    sizes = []
    for i, (size, width) in enumerate(zip(pixels, kernel, strict=True)):
        stride, padding, dilation = _at(how.stride, i, 1), _at(how.padding, i, 0), _at(how.dilation, i, 1)
        reach = dilation * (width - 1) + 1
        if how.transposed:
            sizes.append((size - 1) * stride - 2 * padding + reach + _at(how.output_padding, i, 0))
        else:
            sizes.append((size + 2 * padding - reach) // max(stride, 1) + 1)
    return tuple(max(size, 0) for size in sizes)


def _at(values: Sequence[int], i: int, default: int) -> int:
    return values[i] if i < len(values) else values[0] if values else default


def _check(x: Tensor, weight: Tensor) -> None:
    if len(weight.shape) < 3 or len(x.shape) not in {len(weight.shape), len(weight.shape) - 1}:
        raise NotRecordedError("shapes that are no convolution's")


def _forward(x: Tensor, weight: Tensor, bias: Tensor | None, how: Geometry, groups: int) -> Cost:
    _check(x, weight)
    kernel = weight.shape[2:]
    pixels = x.shape[-len(kernel) :]
    batch = x.shape[0] if len(x.shape) == len(weight.shape) else 1
    out_pixels = math.prod(output_size(pixels, kernel, how))
    channels_out = weight.shape[1] * groups if how.transposed else weight.shape[0]
    work = math.prod(pixels) if how.transposed else out_pixels
    flop = 2 * batch * work * math.prod(weight.shape)
    written = batch * channels_out * out_pixels
    read = x.num_bytes + weight.num_bytes + (bias.num_bytes if bias is not None else 0)
    return Cost(flop, read, written * x.item_bytes, x.dtype, "matrix")


@cost("aten::convolution", "aten::_convolution", "aten::convolution_overrideable", source=DIRECT, wraps=True)
def convolution(call: Call) -> Cost:
    """`(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)`."""
    how = Geometry(call.ints(3), call.ints(4), call.ints(5), call.boolean(6), call.ints(7))
    return _forward(call.tensor(0), call.tensor(1), call.maybe(2), how, call.integer(8))


@cost("aten::conv1d", "aten::conv2d", "aten::conv3d", source=DIRECT, wraps=True)
@cost("aten::mkldnn_convolution", source=DIRECT)
def conv(call: Call) -> Cost:
    """`(input, weight, bias, stride, padding, dilation, groups)`; mkldnn has padding before stride, of equal type."""
    first, second = call.ints(3), call.ints(4)
    stride, padding = (second, first) if call.name == "aten::mkldnn_convolution" else (first, second)
    return _forward(call.tensor(0), call.tensor(1), call.maybe(2), Geometry(stride, padding, call.ints(5)), 1)


@cost("aten::conv_transpose1d", "aten::conv_transpose2d", "aten::conv_transpose3d", source=DIRECT, wraps=True)
def conv_transpose(call: Call) -> Cost:
    """`(input, weight, bias, stride, padding, output_padding, groups, dilation)`."""
    how = Geometry(call.ints(3), call.ints(4), call.ints(7), transposed=True, output_padding=call.ints(5))
    return _forward(call.tensor(0), call.tensor(1), call.maybe(2), how, call.integer(6))


@cost(
    "aten::cudnn_convolution", "aten::miopen_convolution", "aten::miopen_depthwise_convolution", source=DIRECT
)
def vendor_convolution(call: Call) -> Cost:
    """cuDNN: `(input, weight, padding, stride, dilation, groups, …)`; MIOpen has a bias before the padding."""
    at = 3 if "miopen" in call.name else 2
    how = Geometry(call.ints(at + 1), call.ints(at), call.ints(at + 2))
    return _forward(call.tensor(0), call.tensor(1), call.maybe(2) if at == 3 else None, how, 1)


@cost("aten::cudnn_convolution_relu", source=DIRECT)
def convolution_relu(call: Call) -> Cost:
    """`(input, weight, bias, stride, padding, dilation, groups)`."""
    how = Geometry(call.ints(3), call.ints(4), call.ints(5))
    return _forward(call.tensor(0), call.tensor(1), call.maybe(2), how, 1)


@cost("aten::cudnn_convolution_transpose", "aten::miopen_convolution_transpose", source=DIRECT)
def vendor_transpose(call: Call) -> Cost:
    """cuDNN: `(input, weight, padding, output_padding, stride, dilation, groups, …)`; MIOpen has a bias before."""
    at = 3 if "miopen" in call.name else 2
    how = Geometry(
        call.ints(at + 2), call.ints(at), call.ints(at + 3), transposed=True, output_padding=call.ints(at + 1)
    )
    return _forward(call.tensor(0), call.tensor(1), None, how, call.integer(at + 4))


@cost("aten::_slow_conv2d_forward", "aten::thnn_conv2d", "aten::slow_conv3d_forward", source=DIRECT)
@cost("aten::_conv_depthwise2d", "aten::conv_depthwise3d", "aten::slow_conv_dilated2d", source=DIRECT)
def native_convolution(call: Call) -> Cost:
    """`(input, weight, kernel_size, bias, stride, padding[, dilation])`."""
    dilation = call.ints(6) if "depthwise" in call.name or "dilated" in call.name else ()
    how = Geometry(call.ints(4), call.ints(5), dilation)
    return _forward(call.tensor(0), call.tensor(1), call.maybe(3), how, 1)


@cost("aten::slow_conv_transpose2d", "aten::slow_conv_transpose3d", source=DIRECT)
def native_transpose(call: Call) -> Cost:
    """`(input, weight, kernel_size, bias, stride, padding, output_padding, dilation)`."""
    how = Geometry(call.ints(4), call.ints(5), call.ints(7), transposed=True, output_padding=call.ints(6))
    return _forward(call.tensor(0), call.tensor(1), call.maybe(3), how, 1)


@cost("aten::convolution_backward", source="the forward product, once per gradient of input and weight")
def convolution_backward(call: Call) -> Cost:
    """`(grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask)`."""
    grad, x, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    _check(x, weight)
    wanted = _mask(call, 10)
    try:
        transposed = call.boolean(7)
    except NotRecordedError:
        transposed = False
    return _gradients(grad, x, weight, wanted, transposed=transposed)


@cost("aten::cudnn_convolution_backward", source="the forward product, once per gradient of input and weight")
def legacy_backward(call: Call) -> Cost:
    """`(input, grad, weight, …)`, of torch before 1.11; it does not record which gradients are wanted."""
    x, grad, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    _check(x, weight)
    found = _gradients(grad, x, weight, (True, True), transposed=False)
    return found._replace(assumption="gradients of both input and weight")


def _gradients(
    grad: Tensor, x: Tensor, weight: Tensor, wanted: tuple[bool, bool], *, transposed: bool
) -> Cost:
    for_x, for_weight = wanted
    walked = x if transposed else grad
    pixels = math.prod(walked.shape[-(len(weight.shape) - 2) :])
    batch = x.shape[0] if len(x.shape) == len(weight.shape) else 1
    once = 2 * batch * pixels * math.prod(weight.shape)
    flop = once * (for_x + for_weight)
    # The weight's gradient needs grad and input, the input's grad and weight; what both need is read once.
    read = grad.num_bytes + (x.num_bytes if for_weight else 0) + (weight.num_bytes if for_x else 0)
    written = (x.numel * x.item_bytes if for_x else 0) + (weight.num_bytes if for_weight else 0)
    return Cost(flop, read, written, x.dtype, "matrix")


def _mask(call: Call, i: int) -> tuple[bool, bool]:
    """Whether the gradients of input and weight are wanted; both where the trace does not say."""
    try:
        found = [bool(one) for one in call.ints(i)]
    except NotRecordedError:
        return True, True
    return (found[0], found[1]) if len(found) == 3 else (True, True)
