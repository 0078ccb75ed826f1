"""Tensors as a trace describes them: shape, element type, strides; and what arithmetic on them yields."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import NamedTuple

DTYPES: Mapping[str, str] = MappingProxyType(
    {
        "float": "float32",
        "double": "float64",
        "c10::Half": "float16",
        "c10::BFloat16": "bfloat16",
        "c10::Float8_e4m3fn": "float8",
        "c10::Float8_e5m2": "float8",
        "c10::Float8_e4m3fnuz": "float8",
        "c10::Float8_e5m2fnuz": "float8",
        "c10::Float8_e8m0fnu": "float8",
        "c10::Float4_e2m1fn_x2": "float4",
        "c10::complex<float>": "complex64",
        "c10::complex<double>": "complex128",
        "c10::complex<c10::Half>": "complex32",
        "long int": "int64",
        "long": "int64",
        "long long": "int64",
        "int": "int32",
        "short": "int16",
        "short int": "int16",
        "signed char": "int8",
        "char": "int8",
        "unsigned char": "uint8",
        "unsigned short": "uint16",
        "unsigned int": "uint32",
        "unsigned long": "uint64",
        "c10::qint8": "int8",
        "c10::quint8": "uint8",
        "c10::qint32": "int32",
        "bool": "bool",
    }
)
"""C++ type that the profiler writes for a tensor: the name that torch gives it. Anything else is not a tensor."""

ITEM_BYTES: Mapping[str, int] = MappingProxyType(
    {
        "bool": 1,
        "uint8": 1,
        "int8": 1,
        "float8": 1,
        "float4": 1,  # two values share the byte that is counted as one element
        "int16": 2,
        "uint16": 2,
        "float16": 2,
        "bfloat16": 2,
        "int32": 4,
        "uint32": 4,
        "float32": 4,
        "complex32": 4,
        "int64": 8,
        "uint64": 8,
        "float64": 8,
        "complex64": 8,
        "complex128": 16,
    }
)
"""Bytes of an element."""


class Tensor(NamedTuple):
    """One tensor argument."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None

    @property
    def numel(self) -> int:
        """Number of elements.

        >>> Tensor((2, 3), "float32").numel
        6
        """
        return math.prod(self.shape)

    @property
    def item_bytes(self) -> int:
        """Bytes of an element."""
        return ITEM_BYTES[self.dtype]

    @property
    def num_bytes(self) -> int:
        """Bytes of memory behind it; elements that an expanded dimension (stride 0) repeats count once.

        >>> Tensor((4, 3), "float32").num_bytes, Tensor((4, 3), "float32", (0, 1)).num_bytes
        (48, 12)
        """
        strides = self.strides or ()
        if len(strides) != len(self.shape):
            return self.numel * self.item_bytes
        held = (1 if stride == 0 and size else size for size, stride in zip(self.shape, strides, strict=True))
        return math.prod(held) * self.item_bytes


def broadcast(shapes: Iterable[Sequence[int]]) -> tuple[int, ...]:
    """The shape that shapes broadcast to; where they do not fit, the larger size of each dimension.

    >>> broadcast([(4, 1, 3), (2, 1)])
    (4, 2, 3)
    """
    result: list[int] = []
    for shape in shapes:
        reverse = list(reversed(shape))
        for i, size in enumerate(reverse):
            if i == len(result):
                result.append(size)
            elif result[i] == 1 or (size > result[i] and result[i] != 0) or size == 0:
                result[i] = size
    return tuple(reversed(result))


def promote(tensors: Sequence[Tensor]) -> str:
    """The element type of a result: torch's rules, by which numbers (no dimensions) yield to tensors of their category.

    >>> promote([Tensor((2,), "bfloat16"), Tensor((), "float64")])
    'bfloat16'
    >>> promote([Tensor((2,), "int64"), Tensor((), "float32")]), promote([Tensor((2,), "float16"), Tensor((2,), "bfloat16")])
    ('float32', 'float32')
    """
    with_dims = _common([tensor.dtype for tensor in tensors if tensor.shape])
    numbers = _common([tensor.dtype for tensor in tensors if not tensor.shape])
    if with_dims is None or numbers is None:
        return with_dims or numbers or "bool"
    if _category(numbers) <= _category(with_dims):
        return with_dims
    if numbers.startswith("complex") and _category(with_dims) == FLOATING:
        return COMPLEX_OF.get(with_dims, "complex64")
    return numbers


FLOATING = 2

COMPLEX_OF = {"float64": "complex128", "float16": "complex32"}


def _common(dtypes: Sequence[str]) -> str | None:
    return reduce(_wider, dtypes) if dtypes else None


def _category(dtype: str) -> int:
    for rank, prefix in enumerate(("bool", "u", "int", "float", "bfloat", "complex")):
        if dtype.startswith(prefix):
            return (0, 1, 1, 2, 2, 3)[rank]
    return 0


def _wider(a: str, b: str) -> str:
    if _category(a) != _category(b):
        low, high = sorted((a, b), key=_category)
        return "complex128" if high.startswith("complex") and low == "float64" else high
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if {a, b} == {"int8", "uint8"}:
        return "int16"
    return max(a, b, key=ITEM_BYTES.__getitem__)
