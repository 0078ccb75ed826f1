"""Normalisations and softmax: a few passes over their input, which are counted as one read and one write."""

from __future__ import annotations

import math

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.costs.tensors import Tensor

STATISTIC_BYTES = 4
"""Means and inverse deviations are kept in float32 on GPUs."""


def _given(call: Call, *positions: int) -> int:
    return sum(tensor.num_bytes for i in positions if (tensor := call.maybe(i)) is not None)


def _rows(call: Call, x: Tensor, at: int) -> int:
    """Rows over which statistics are taken, from the normalised shape or the weight's."""
    try:
        normalised = math.prod(call.ints(at))
    except NotRecordedError:
        weight = call.maybe(at + 1)
        normalised = weight.numel if weight is not None else x.shape[-1] if x.shape else 1
    return x.numel // max(normalised, 1)


@cost("aten::layer_norm", source="8 per element", wraps=True)
@cost("aten::native_layer_norm", source="8 per element: mean, deviation, square, sum, scale, weight, bias")
def layer_norm(call: Call) -> Cost:
    """`(input, normalized_shape, weight, bias, eps)`; writes result, mean and inverse deviation."""
    x = call.tensor(0)
    written = x.numel * x.item_bytes + 2 * _rows(call, x, 1) * STATISTIC_BYTES
    return Cost(8 * x.numel, x.num_bytes + _given(call, 2, 3), written, x.dtype)


@cost("aten::native_layer_norm_backward", source="14 per element: two sums per row and two per column")
def layer_norm_backward(call: Call) -> Cost:
    """`(grad, input, normalized_shape, mean, rstd, weight, bias, mask)`."""
    grad, x = call.tensor(0), call.tensor(1)
    read = grad.num_bytes + x.num_bytes + _given(call, 3, 4, 5)
    return Cost(14 * x.numel, read, x.numel * x.item_bytes + _given(call, 5, 6), x.dtype)


@cost("aten::rms_norm", source="4 per element", wraps=True)
@cost("aten::_fused_rms_norm", source="4 per element: square, sum, scale, weight", wraps=True)
def rms_norm(call: Call) -> Cost:
    """`(input, normalized_shape, weight, eps)`."""
    x = call.tensor(0)
    return Cost(4 * x.numel, x.num_bytes + _given(call, 2), x.numel * x.item_bytes, x.dtype)


@cost("aten::_fused_rms_norm_backward", source="8 per element")
def rms_norm_backward(call: Call) -> Cost:
    """`(grad, input, normalized_shape, rstd, weight, mask)`."""
    grad, x = call.tensor(0), call.tensor(1)
    read = grad.num_bytes + x.num_bytes + _given(call, 3, 4)
    return Cost(8 * x.numel, read, x.numel * x.item_bytes + _given(call, 4), x.dtype)


@cost(
    "_C::rms_norm",
    "_C::gemma_rms_norm",
    "sgl_kernel::rmsnorm",
    "sgl_kernel::gemma_rmsnorm",
    "aiter::rmsnorm",
    "aiter::rms_norm_cu",
    source="4 per element: square, sum, scale, weight",
)
@cost(
    "_C::rms_norm_static_fp8_quant",
    "_C::rms_norm_dynamic_per_token_quant",
    source="5 per element: the scaling of the result beside",
)
def served_rms_norm(call: Call) -> Cost:
    """`(out, input, weight, …)`: `csrc/torch_bindings.cpp` of vLLM, `common_extension.cc` of sgl-kernel, `ops/rmsnorm.py` of aiter."""
    out, x = call.tensor(0), call.tensor(1)
    flop = 5 if "quant" in call.name else 4
    return Cost(flop * x.numel, x.num_bytes + _given(call, 2), x.numel * out.item_bytes, x.dtype)


@cost("aiter::rms_norm", "aiter::rmsnorm2d_fwd", source="4 per element", wraps=True)
def returned_rms_norm(call: Call) -> Cost:
    """aiter: `(input, weight, eps, …)`, which calls `aiter::rmsnorm` where that is an operator of its own."""
    x = call.tensor(0)
    return Cost(4 * x.numel, x.num_bytes + _given(call, 1), x.numel * x.item_bytes, x.dtype)


@cost(
    "_C::fused_add_rms_norm",
    "sgl_kernel::fused_add_rmsnorm",
    "sgl_kernel::gemma_fused_add_rmsnorm",
    "aiter::fused_add_rms_norm_cu",
    source="5 per element: the residual's addition beside",
)
def served_add_rms_norm(call: Call) -> Cost:
    """`(input, residual, weight, eps, …)`, both written, in vLLM, sgl-kernel and aiter."""
    x, residual = call.tensor(0), call.tensor(1)
    written = x.num_bytes + residual.num_bytes
    return Cost(5 * x.numel, written + _given(call, 2), written, x.dtype)


@cost("aiter::rmsnorm2d_fwd_with_add", source="5 per element", wraps=True)
@cost("aiter::add_rmsnorm", source="5 per element: the residual's addition beside")
def apart_add_rms_norm(call: Call) -> Cost:
    """aiter: `(out, input, residual_in, residual_out, weight, eps, …)`."""
    x = call.tensor(1)
    written = x.numel * (call.tensor(0).item_bytes + call.tensor(3).item_bytes)
    return Cost(5 * x.numel, x.num_bytes + _given(call, 2, 4), written, x.dtype)


@cost("_C::fused_add_rms_norm_static_fp8_quant", source="6 per element: addition and scaling beside")
def quantised_add_rms_norm(call: Call) -> Cost:
    """vLLM: `(result, input, residual, weight, scale, eps)`; the residual is written, too."""
    out, x, residual = call.tensor(0), call.tensor(1), call.tensor(2)
    written = x.numel * out.item_bytes + residual.num_bytes
    return Cost(6 * x.numel, x.num_bytes + residual.num_bytes + _given(call, 3), written, x.dtype)


@cost("aten::group_norm", source="8 per element", wraps=True)
@cost("aten::native_group_norm", source="8 per element")
def group_norm(call: Call) -> Cost:
    """`(input, weight, bias, …)`; the statistics, one per group, are left out."""
    x = call.tensor(0)
    at = (2, 3) if call.name == "aten::group_norm" else (1, 2)
    return Cost(8 * x.numel, x.num_bytes + _given(call, *at), x.numel * x.item_bytes, x.dtype)


@cost("aten::native_group_norm_backward", source="14 per element")
def group_norm_backward(call: Call) -> Cost:
    """`(grad, input, mean, rstd, weight, …)`."""
    grad, x = call.tensor(0), call.tensor(1)
    read = grad.num_bytes + x.num_bytes + _given(call, 2, 3, 4)
    return Cost(14 * x.numel, read, x.numel * x.item_bytes + 2 * _given(call, 4), x.dtype)


@cost(
    "aten::batch_norm",
    "aten::_batch_norm_impl_index",
    "aten::instance_norm",
    source="8 per element in training, 4 with fixed statistics",
    wraps=True,
)
@cost(
    "aten::native_batch_norm",
    "aten::cudnn_batch_norm",
    "aten::miopen_batch_norm",
    "aten::_native_batch_norm_legit",
    "aten::_batch_norm_with_update",
    "aten::_native_batch_norm_legit_no_training",
    "aten::_batch_norm_no_update",
    source="8 per element in training, 4 with fixed statistics",
)
def batch_norm(call: Call) -> Cost:
    """`(input, weight, bias, running_mean, running_var, training, …)`."""
    x = call.tensor(0)
    training = not call.name.endswith(("no_training", "no_update"))
    if training and "with_update" not in call.name:
        try:
            training = call.boolean(5)
        except NotRecordedError:
            training = True
    parameters = _given(call, 1, 2, 3, 4)
    statistics = 2 * _given(call, 3, 4) if training else 0  # running ones and those kept for backward
    return Cost(
        (8 if training else 4) * x.numel,
        x.num_bytes + parameters,
        x.numel * x.item_bytes + statistics,
        x.dtype,
    )


@cost(
    "aten::native_batch_norm_backward",
    "aten::batch_norm_backward",
    "aten::cudnn_batch_norm_backward",
    "aten::miopen_batch_norm_backward",
    source="14 per element",
)
def batch_norm_backward(call: Call) -> Cost:
    """Gradient and input in either order, then the parameters."""
    first, second = call.tensor(0), call.tensor(1)
    read = first.num_bytes + second.num_bytes + _given(call, 2, 3, 4, 5, 6)
    return Cost(14 * first.numel, read, first.numel * first.item_bytes + 2 * _given(call, 2), first.dtype)


@cost("aten::softmax", "aten::log_softmax", source="5 per element", wraps=True)
@cost(
    "aten::_softmax",
    "aten::_log_softmax",
    "aten::_safe_softmax",
    source="5 per element: maximum, difference, exp, sum, quotient",
)
def softmax(call: Call) -> Cost:
    """`(input, dim, …)`."""
    x = call.tensor(0)
    return Cost(5 * x.numel, x.num_bytes, x.numel * x.item_bytes, x.dtype)


@cost(
    "aten::_softmax_backward_data",
    "aten::_log_softmax_backward_data",
    source="4 per element: product, sum, difference, product",
)
def softmax_backward(call: Call) -> Cost:
    """`(grad, output, dim, dtype)`."""
    grad, out = call.tensor(0), call.tensor(1)
    return Cost(4 * out.numel, grad.num_bytes + out.num_bytes, out.numel * out.item_bytes, out.dtype)
