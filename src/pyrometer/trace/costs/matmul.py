"""Matrix products; what is added to one (a bias, a scaled addend) is left out, as by torch's own counter."""

from __future__ import annotations

import math

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.costs.tensors import Tensor, broadcast


def _product(batch: int, m: int, k: int, n: int, operands: tuple[Tensor, ...], *, out: str = "") -> Cost:
    dtype = operands[0].dtype
    written = Tensor((batch, m, n), out or dtype)
    read = sum(operand.num_bytes for operand in operands)
    return Cost(2 * batch * m * n * k, read, written.num_bytes, dtype, "matrix")


def _inner(a: int, b: int) -> int:
    if a != b:
        raise NotRecordedError(f"the inner sizes {a} and {b} of a matrix product differ")
    return a


@cost("aten::mm", "aten::_int_mm", source="2·m·n·k")
def mm(call: Call) -> Cost:
    """`(m, k) @ (k, n)`."""
    a, b = call.tensor(0, dims=2), call.tensor(1, dims=2)
    out = "int32" if call.name == "aten::_int_mm" else ""
    return _product(1, a.shape[0], _inner(a.shape[1], b.shape[0]), b.shape[1], (a, b), out=out)


@cost("aten::addmm", "aten::addmm_", "aten::_addmm_activation", source="2·m·n·k")
def addmm(call: Call) -> Cost:
    """`addend + (m, k) @ (k, n)`."""
    c, a, b = call.tensor(0), call.tensor(1, dims=2), call.tensor(2, dims=2)
    return _product(1, a.shape[0], _inner(a.shape[1], b.shape[0]), b.shape[1], (a, b, c))


@cost("aten::bmm", source="2·b·m·n·k")
def bmm(call: Call) -> Cost:
    """`(b, m, k) @ (b, k, n)`."""
    a, b = call.tensor(0, dims=3), call.tensor(1, dims=3)
    return _product(a.shape[0], a.shape[1], _inner(a.shape[2], b.shape[1]), b.shape[2], (a, b))


@cost("aten::baddbmm", "aten::baddbmm_", source="2·b·m·n·k")
def baddbmm(call: Call) -> Cost:
    """`addend + (b, m, k) @ (b, k, n)`."""
    c, a, b = call.tensor(0), call.tensor(1, dims=3), call.tensor(2, dims=3)
    return _product(a.shape[0], a.shape[1], _inner(a.shape[2], b.shape[1]), b.shape[2], (a, b, c))


@cost("aten::mv", source="2·m·k", wraps=True)
@cost("aten::dot", "aten::vdot", source="2·k")
def mv(call: Call) -> Cost:
    """Matrix by vector, and the product of two vectors."""
    a, x = call.tensor(0), call.tensor(1, dims=1)
    rows = a.shape[0] if len(a.shape) == 2 else 1
    return _product(1, rows, _inner(a.shape[-1] if a.shape else 1, x.shape[0]), 1, (a, x))


@cost("aten::addmv", "aten::addmv_", source="2·m·k")
def addmv(call: Call) -> Cost:
    """`addend + matrix @ vector`."""
    c, a, x = call.tensor(0), call.tensor(1, dims=2), call.tensor(2, dims=1)
    return _product(1, a.shape[0], _inner(a.shape[1], x.shape[0]), 1, (a, x, c))


@cost("aten::addr", "aten::addr_", source="2·m·n")
@cost("aten::outer", "aten::ger", source="2·m·n", wraps=True)
def outer(call: Call) -> Cost:
    """Outer product, also added to a matrix."""
    first = 1 if call.name.startswith("aten::addr") else 0
    x, y = call.tensor(first, dims=1), call.tensor(first + 1, dims=1)
    operands = (x, y, call.tensor(0)) if first else (x, y)
    return _product(1, x.shape[0], 1, y.shape[0], operands)


@cost(
    "aten::linear",
    "aten::mkldnn_linear",
    "aten::_mkldnn_linear_pointwise",
    "aiter::gemm_a16w16",
    "vllm::rocm_unquantized_gemm",
    source="2·rows·in·out",
    wraps=True,
)
@cost("mkldnn::_linear_pointwise", "mkl::_mkl_linear", source="2·rows·in·out")
def linear(call: Call) -> Cost:
    """`x @ weight.T + bias`, with any number of leading dimensions."""
    x, weight, bias = call.tensor(0), call.tensor(1), call.maybe(2)
    if not x.shape or len(weight.shape) not in {1, 2}:
        raise NotRecordedError("a linear layer of numbers")
    out = weight.shape[0] if len(weight.shape) == 2 else 1
    operands = (x, weight) if bias is None else (x, weight, bias)
    rows = math.prod(x.shape[:-1])
    if call.name == "mkl::_mkl_linear":  # its third argument is the packed weight's original
        operands = (x, weight)
    return _product(1, rows, x.shape[-1], out, operands)


@cost("aten::matmul", source="2·b·m·n·k", wraps=True)
def matmul(call: Call) -> Cost:
    """`torch.matmul`: vectors, matrices and broadcast batches of matrices."""
    a, b = call.tensor(0), call.tensor(1)
    if not a.shape or not b.shape:
        raise NotRecordedError("a matrix product of numbers")
    m = a.shape[-2] if len(a.shape) > 1 else 1
    n = b.shape[-1] if len(b.shape) > 1 else 1
    k = _inner(a.shape[-1], b.shape[-2] if len(b.shape) > 1 else b.shape[0])
    return _product(math.prod(broadcast([a.shape[:-2], b.shape[:-2]])), m, k, n, (a, b))


@cost(
    "aten::_scaled_mm",
    "aten::_scaled_mm_v2",
    "sgl_kernel::fp8_scaled_mm",
    "sgl_kernel::int8_scaled_mm",
    "sgl_kernel::fp8_blockwise_scaled_mm",
    source="2·m·n·k",
)
@cost("_C::cutlass_scaled_mm", source="2·m·n·k")
def scaled_mm(call: Call) -> Cost:
    """Float8 and narrower `(m, k) @ (k, n)`; the result is taken as bfloat16, since the trace does not say.

    vLLM's has the result in front.
    """
    first = 1 if call.name == "_C::cutlass_scaled_mm" else 0
    a, b = call.tensor(first, dims=2), call.tensor(first + 1, dims=2)
    packed = 2 if a.dtype == "float4" else 1
    k = _inner(a.shape[1], b.shape[0]) * packed
    product = _product(1, a.shape[0], k, b.shape[1], (a, b), out="bfloat16")
    return product._replace(assumption="result taken as bfloat16")


@cost("aten::_grouped_mm", "aten::_scaled_grouped_mm", source="2·rows·n·k: each row meets one group's matrix")
def grouped_mm(call: Call) -> Cost:
    """Rows against the matrix of their group: `(rows, k) @ (groups, k, n)`, or a batch on both sides."""
    a, b = call.tensor(0), call.tensor(1)
    if len(a.shape) == 3 and len(b.shape) == 3:
        return _product(
            a.shape[0], a.shape[1], _inner(a.shape[2], b.shape[1]), b.shape[2], (a, b), out="bfloat16"
        )
    if len(a.shape) == 2 and len(b.shape) == 3:
        return _product(1, a.shape[0], _inner(a.shape[1], b.shape[1]), b.shape[2], (a, b), out="bfloat16")
    raise NotRecordedError("the sizes of the groups")


@cost("aten::addbmm", "aten::addbmm_", source="2·b·m·n·k")
def addbmm(call: Call) -> Cost:
    """`addend + Σ (b, m, k) @ (b, k, n)`."""
    c, a, b = call.tensor(0), call.tensor(1, dims=3), call.tensor(2, dims=3)
    k = _inner(a.shape[2], b.shape[1]) * a.shape[0]
    return _product(1, a.shape[1], k, b.shape[2], (a, b, c))
