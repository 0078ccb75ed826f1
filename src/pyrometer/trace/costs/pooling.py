"""Pooling and resampling of images."""

from __future__ import annotations

import math

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.costs.tensors import Tensor

INDEX_BYTES = 8
WINDOW = "one per element of each window"


def pooled_size(size: int, kernel: int, stride: int, padding: int, dilation: int, *, ceil: bool) -> int:
    """Windows along one dimension.

    >>> pooled_size(112, 3, 2, 1, 1, ceil=False)
    56
    """
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (-(-room // stride) if ceil else room // stride) + 1
    return count - 1 if ceil and (count - 1) * stride >= size + padding else count


def _windows(call: Call, x: Tensor, *, dilated: bool) -> tuple[int, int]:
    """Windows in all, and elements of one."""
    kernel = call.ints(1)
    rank = {"1": 1, "2": 2, "3": 3}[next(c for c in call.name if c in "123")]
    kernel = kernel * rank if len(kernel) == 1 else kernel
    stride = call.ints(2) or kernel
    padding = call.ints(3)
    dilation = call.ints(4) if dilated else []
    ceil = call.boolean(5 if dilated else 4)
    if len(kernel) != rank or len(x.shape) < rank:
        raise NotRecordedError("shapes that are no pooling's")
    out = math.prod(x.shape[:-rank])
    for i in range(rank):
        at = [
            values[min(i, len(values) - 1)] if values else default
            for values, default in ((stride, 1), (padding, 0), (dilation, 1))
        ]
        out *= max(pooled_size(x.shape[-rank + i], kernel[i], max(at[0], 1), at[1], at[2], ceil=ceil), 0)
    return out, math.prod(kernel)


@cost("aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d", source=WINDOW, wraps=True)
@cost(
    "aten::max_pool2d_with_indices",
    "aten::max_pool3d_with_indices",
    "aten::max_pool1d_with_indices",
    source=WINDOW,
)
def max_pool(call: Call) -> Cost:
    """`(input, kernel, stride, padding, dilation, ceil_mode)`."""
    x = call.tensor(0)
    numel, window = _windows(call, x, dilated=True)
    item = x.item_bytes + (INDEX_BYTES if call.name.endswith("indices") else 0)
    return Cost(numel * window, x.num_bytes, numel * item, x.dtype)


@cost("aten::avg_pool2d", "aten::avg_pool3d", source=WINDOW)
@cost("aten::avg_pool1d", source=WINDOW, wraps=True)
def avg_pool(call: Call) -> Cost:
    """`(input, kernel, stride, padding, ceil_mode, …)`."""
    x = call.tensor(0)
    numel, window = _windows(call, x, dilated=False)
    return Cost(numel * window, x.num_bytes, numel * x.item_bytes, x.dtype)


@cost(
    "aten::max_pool2d_with_indices_backward",
    "aten::max_pool3d_with_indices_backward",
    source="one per element of the gradient",
)
def max_pool_backward(call: Call) -> Cost:
    """`(grad, input, …, indices)`; the input itself is not read."""
    grad, x = call.tensor(0), call.tensor(1)
    read = grad.num_bytes + grad.numel * INDEX_BYTES
    return Cost(grad.numel, read, x.numel * x.item_bytes, grad.dtype)


@cost("aten::avg_pool2d_backward", "aten::avg_pool3d_backward", source="one per element of the result")
@cost(
    "aten::_adaptive_avg_pool2d_backward",
    "aten::_adaptive_avg_pool3d_backward",
    source="one per element of the result",
)
def avg_pool_backward(call: Call) -> Cost:
    """`(grad, input, …)`."""
    grad, x = call.tensor(0), call.tensor(1)
    return Cost(x.numel, grad.num_bytes, x.numel * x.item_bytes, grad.dtype)


@cost("aten::adaptive_avg_pool2d", "aten::adaptive_avg_pool3d", source="one per element read", wraps=True)
@cost("aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool3d", source="one per element read")
@cost("aten::adaptive_max_pool2d", source="one per element read")
def adaptive_pool(call: Call) -> Cost:
    """`(input, output_size)`."""
    x = call.tensor(0)
    rank = 3 if "3d" in call.name else 2
    size = call.ints(1)
    lead = math.prod(x.shape[:-rank]) if len(x.shape) >= rank else 1
    return Cost(x.numel, x.num_bytes, lead * math.prod(size) * x.item_bytes, x.dtype)


@cost(
    "aten::upsample_nearest1d",
    "aten::upsample_nearest2d",
    "aten::upsample_nearest3d",
    "aten::_upsample_nearest_exact2d",
    source="no FLOP; input read, result written",
)
@cost("aten::upsample_bilinear2d", "aten::upsample_linear1d", source="8 per pixel of the result")
@cost("aten::upsample_bicubic2d", source="32 per pixel of the result")
def upsample(call: Call) -> Cost:
    """`(input, output_size, …, scales)`."""
    x = call.tensor(0)
    numel = math.prod(x.shape[:2]) * math.prod(_resampled(call, x))
    per_pixel = 32 if "cubic" in call.name else 8 if "linear" in call.name else 0
    return Cost(per_pixel * numel, x.num_bytes, numel * x.item_bytes, x.dtype)


def _resampled(call: Call, x: Tensor) -> list[int]:
    size = call.ints(1)
    if size:
        return size
    for text in call.texts[2:]:
        values = text.strip("[]").split(",")
        if len(values) == len(x.shape) - 2 and "." in text:
            return [int(n * float(s)) for n, s in zip(x.shape[2:], values, strict=True)]
    raise NotRecordedError("the size of the result")


@cost("aten::grid_sampler_2d", "aten::cudnn_grid_sampler", source="20 per pixel of the result")
def grid_sample(call: Call) -> Cost:
    """`(input (N, C, H, W), grid (N, H, W, 2), …)`."""
    x, grid = call.tensor(0, dims=4), call.tensor(1, dims=4)
    numel = x.shape[0] * x.shape[1] * grid.shape[1] * grid.shape[2]
    return Cost(20 * numel, x.num_bytes + grid.num_bytes, numel * x.item_bytes, x.dtype)
