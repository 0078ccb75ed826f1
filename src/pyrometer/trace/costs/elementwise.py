"""Operators that treat each element alone, with broadcasting and type promotion."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from pyrometer.trace.costs.call import Call, NotRecordedError
from pyrometer.trace.costs.registry import Cost, cost
from pyrometer.trace.costs.tensors import Tensor, broadcast, promote


class Shape(NamedTuple):
    """What an elementwise operator does per element."""

    flop: int
    inputs: int  # leading arguments that may be tensors; a later one is `out=`


def _table(inputs: int, flop_of: str) -> dict[str, Shape]:
    """Names by their FLOP per element: `1: neg abs` in lines."""
    table = {}
    for line in flop_of.strip().splitlines():
        flop, names = line.split(":")
        table.update({name: Shape(int(flop), inputs) for name in names.split()})
    return table


UNARY = _table(
    1,
    """
    1: neg abs sign sgn sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh asinh acosh
    1: atanh erf erfc erfinv floor ceil round trunc reciprocal relu relu6 tanh square bitwise_not logical_not
    1: isnan isinf isfinite nan_to_num lgamma digamma angle i0 signbit frac isneginf isposinf deg2rad rad2deg
    1: _conj_physical real imag positive
    2: rsqrt clamp hardtanh leaky_relu threshold logical_and_scalar hardshrink softshrink prelu_scalar
    3: elu selu celu softplus log_sigmoid log_sigmoid_forward hardsigmoid logit sinc
    4: sigmoid hardswish
    5: silu gelu glu
    6: mish
    """,
)
"""Sigmoid is a negation, an exponential, an addition and a division; GELU x·(1 + erf(x·c))·½ is five."""

BINARY = _table(
    2,
    """
    1: add sub mul div true_divide floor_divide remainder fmod pow maximum minimum fmax fmin atan2 eq ne lt le gt ge
    1: bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_or logical_xor
    1: clamp_min clamp_max rsub float_power copysign __and__ __or__ __xor__ __lshift__ __rshift__ __iand__ __ior__
    1: masked_fill fill_masked heaviside ldexp hypot nextafter threshold_backward xlogy relu_backward prelu _prelu_kernel
    2: hardtanh_backward leaky_relu_backward hardswish_backward
    3: tanh_backward sigmoid_backward lerp elu_backward softplus_backward logit_backward log_sigmoid_backward
    3: hardsigmoid_backward glu_backward
    6: silu_backward
    9: gelu_backward
    8: mish_backward
    """,
)

TERNARY = _table(
    3,
    """
    1: where _s_where
    2: clamp_Tensor
    3: addcmul addcdiv
    """,
)

ELEMENTWISE: Mapping[str, Shape] = MappingProxyType({**UNARY, **BINARY, **TERNARY})
"""Operator without its namespace and without the `_` of the in-place form."""

TRUTH = frozenset(
    {
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_and",
        "logical_or",
        "logical_xor",
        "logical_not",
        "isnan",
        "isinf",
        "isfinite",
        "isneginf",
        "isposinf",
        "signbit",
    }
)
"""Operators whose result is bool."""

WRAPPERS = frozenset(
    {
        "relu",
        "relu_",
        "relu6",
        "relu6_",
        "selu",
        "selu_",
        "square",
        "square_",
        "rsub",
        "true_divide",
        "true_divide_",
        "masked_fill",
        "prelu",
        "where",
        "_s_where",
    }
)
"""Operators that torch makes of others, on some devices or in some releases: `relu` of `clamp_min`."""

_NAMES = {name + suffix for name in ELEMENTWISE for suffix in ("", "_") if not name.endswith("_")}
_PER_ELEMENT = "operations per element × elements of the broadcast result"


@cost(*(f"aten::{name}" for name in sorted(_NAMES & WRAPPERS)), source=_PER_ELEMENT, wraps=True)
@cost(*(f"aten::{name}" for name in sorted(_NAMES - WRAPPERS)), source=_PER_ELEMENT)
def elementwise(call: Call) -> Cost:
    """One pass over the operands: read each, write the result."""
    name = call.name.removeprefix("aten::")
    shape = ELEMENTWISE.get(name) or ELEMENTWISE[name.rstrip("_")]
    inputs = [tensor for i in range(shape.inputs) if (tensor := call.maybe(i)) is not None]
    if not inputs:
        raise NotRecordedError("no tensor among the arguments has a recorded shape")
    base = name.rstrip("_")
    if call.in_place and not name.startswith("__"):
        result = inputs[0]
    else:
        chosen = inputs[1:] if base in {"where", "_s_where"} and len(inputs) > 1 else inputs
        dtype = "bool" if base in TRUTH else _result_dtype(base, chosen)
        result = Tensor(broadcast([one.shape for one in inputs]), dtype)
    return streamed(inputs, result, shape.flop)


def streamed(inputs: list[Tensor], result: Tensor, flop_per_element: int) -> Cost:
    """Inputs read once, a result written once."""
    numel = Tensor(broadcast([*(tensor.shape for tensor in inputs), result.shape]), "bool").numel
    return Cost(
        flop_per_element * numel,
        sum(tensor.num_bytes for tensor in inputs),
        result.numel * result.item_bytes,
        promote(inputs),
    )


_INTEGER_TO_FLOAT = frozenset(
    {
        "div",
        "true_divide",
        "sqrt",
        "exp",
        "log",
        "rsqrt",
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "erf",
        "reciprocal",
        "log2",
        "log1p",
    }
)


def _result_dtype(name: str, inputs: list[Tensor]) -> str:
    dtype = promote(inputs)
    is_whole = dtype == "bool" or dtype.startswith(("int", "uint"))
    return "float32" if is_whole and name in _INTEGER_TO_FLOAT else dtype


@cost("aten::native_dropout", source="2 per element: draw and scale; the mask is written as bool")
def native_dropout(call: Call) -> Cost:
    """Result and mask."""
    x = call.tensor(0)
    return Cost(2 * x.numel, x.num_bytes, x.numel * (x.item_bytes + 1), x.dtype)


@cost("aten::native_dropout_backward", source="2 per element")
def native_dropout_backward(call: Call) -> Cost:
    """Gradient by mask by scale."""
    return streamed([call.tensor(0), call.tensor(1)], call.tensor(0), 2)


@cost("aten::complex", "aten::polar", source="2 per element")
def complex_from_parts(call: Call) -> Cost:
    """Two real tensors to a complex one."""
    parts = [call.tensor(0), call.tensor(1)]
    dtype = "complex128" if promote(parts) == "float64" else "complex64"
    return streamed(parts, Tensor(broadcast([part.shape for part in parts]), dtype), 2)
