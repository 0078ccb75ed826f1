"""Activations that halve their input, and conversions to narrow numbers, as the kernels of inference engines fuse them."""

from __future__ import annotations

from pyrometer.trace.costs.call import Call
from pyrometer.trace.costs.registry import Cost, cost

_GATED = (
    "silu_and_mul",
    "mul_and_silu",
    "gelu_and_mul",
    "gelu_tanh_and_mul",
    "fatrelu_and_mul",
    "swigluoai_and_mul",
)


@cost(
    *(f"{library}::{name}" for library in ("_C", "sgl_kernel", "aiter") for name in _GATED),
    source="6 per result: an activation of five, and the product with the other half",
)
def gated(call: Call) -> Cost:
    """`(out, input, …)` in vLLM, sgl-kernel and aiter: `(…, 2·d)` to `(…, d)`."""
    out, x = call.tensor(0), call.tensor(1)
    return Cost(6 * out.numel, x.num_bytes, out.num_bytes, x.dtype)


@cost("_C::gelu_new", "_C::gelu_fast", "_C::gelu_quick", source="5 per element")
def gelu(call: Call) -> Cost:
    """vLLM: `(out, input)`."""
    out, x = call.tensor(0), call.tensor(1)
    return Cost(5 * x.numel, x.num_bytes, out.num_bytes, x.dtype)


@cost("_C::silu_and_mul_quant", source="7 per result: the scaling beside")
def gated_quantised(call: Call) -> Cost:
    """vLLM: `(result, input, scale)`."""
    out, x = call.tensor(0), call.tensor(1)
    return Cost(7 * out.numel, x.num_bytes, out.num_bytes, x.dtype)


@cost(
    "_C::static_scaled_fp8_quant",
    "_C::dynamic_scaled_fp8_quant",
    "_C::dynamic_per_token_scaled_fp8_quant",
    "_C::static_scaled_int8_quant",
    "_C::dynamic_scaled_int8_quant",
    source="2 per element: scaling and clamping",
)
def quantise(call: Call) -> Cost:
    """vLLM: `(result, input, scale, …)`."""
    out, x = call.tensor(0), call.tensor(1)
    return Cost(2 * x.numel, x.num_bytes, out.num_bytes, x.dtype)


@cost(
    "sgl_kernel::sgl_per_token_group_quant_fp8",
    "sgl_kernel::sgl_per_token_group_quant_int8",
    "sgl_kernel::sgl_per_token_quant_fp8",
    "sgl_kernel::sgl_per_tensor_quant_fp8",
    source="2 per element: scaling and clamping",
)
def quantise_groups(call: Call) -> Cost:
    """sgl-kernel: `(input, result, scales, …)`."""
    x, out, scales = call.tensor(0), call.tensor(1), call.tensor(2)
    return Cost(2 * x.numel, x.num_bytes, out.num_bytes + scales.num_bytes, x.dtype)
