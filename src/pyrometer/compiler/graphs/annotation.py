"""What torch writes beside a value: `f32[4, 16][16, 1]cpu`, `Sym(s77)`."""

from __future__ import annotations

import math
from typing import NamedTuple

_DTYPES = {
    "f16": ("float16", 2),
    "f32": ("float32", 4),
    "f64": ("float64", 8),
    "bf16": ("bfloat16", 2),
    "f8e4m3fn": ("float8_e4m3fn", 1),
    "f8e4m3fnuz": ("float8_e4m3fnuz", 1),
    "f8e5m2": ("float8_e5m2", 1),
    "f8e5m2fnuz": ("float8_e5m2fnuz", 1),
    "f8e8m0fnu": ("float8_e8m0fnu", 1),
    "f4e2m1fnx2": ("float4_e2m1fn_x2", 1),
    "c32": ("complex32", 4),
    "c64": ("complex64", 8),
    "c128": ("complex128", 16),
    "i8": ("int8", 1),
    "i16": ("int16", 2),
    "i32": ("int32", 4),
    "i64": ("int64", 8),
    "b8": ("bool", 1),
    "u8": ("uint8", 1),
    "u16": ("uint16", 2),
    "u32": ("uint32", 4),
    "u64": ("uint64", 8),
    "b1x8": ("bits1x8", 1),
    "b2x4": ("bits2x4", 1),
    "b4x2": ("bits4x2", 1),
    "b8x1": ("bits8", 1),
    "b16x1": ("bits16", 2),
}
"""Torch's abbreviations: the name, and bytes per element."""

_SHORT = {name: short for short, (name, _) in _DTYPES.items()}


class Value(NamedTuple):
    """What is known of a value; all empty for one that is no tensor and no symbol."""

    dtype: str = ""
    shape: tuple[str, ...] = ()
    stride: tuple[str, ...] = ()
    device: str = ""
    symbol: str = ""
    num_bytes: int | None = None


def read_annotation(text: str) -> Value:
    """Read what stands beside a value; what is not understood is left out.

    >>> read_annotation("f32[4, s0 + 1][s0 + 1, 1]cuda:0")
    Value(dtype='float32', shape=('4', 's0 + 1'), stride=('s0 + 1', '1'), device='cuda:0', symbol='', num_bytes=None)
    >>> read_annotation("bf16[2, 3][3, 1]cpu").num_bytes, read_annotation("Sym(s77)").symbol, read_annotation("?")[:2]
    (12, 's77', ('', ()))
    """
    text = text.strip()
    if text.startswith("Sym(") and text.endswith(")"):
        return Value(symbol=text[4:-1])
    wrapper, parenthesis, inner = text.partition("(")
    if (
        parenthesis and wrapper.isidentifier() and inner.endswith(")")
    ):  # a tensor subclass, DTensor(f32[4][1]cpu, S(0))
        text = inner[:-1]
    head, bracket, rest = text.partition("[")
    if not bracket or not head.isalnum():
        return Value()
    shape, rest = _bracketed(rest)
    stride: tuple[str, ...] = ()
    if rest.startswith("["):
        stride, rest = _bracketed(rest[1:])
    dtype, element_bytes = _DTYPES.get(head, (head, None))
    sizes = [int(size) for size in shape if size.isascii() and size.isdigit() and len(size) < 20]
    known = element_bytes is not None and len(sizes) == len(shape)
    return Value(
        dtype,
        shape,
        stride,
        rest.partition(",")[0].strip(),
        num_bytes=math.prod(sizes) * (element_bytes or 0) if known else None,
    )


def short_dtype(dtype: str) -> str:
    """Torch's abbreviation of a dtype.

    >>> short_dtype("bfloat16"), short_dtype("quint4x2")
    ('bf16', 'quint4x2')
    """
    return _SHORT.get(dtype, dtype)


def _bracketed(text: str) -> tuple[tuple[str, ...], str]:
    """The parts up to the bracket that closes, and what follows it; commas inside of brackets do not part."""
    parts, depth, start = list[str](), 0, 0
    for place, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif depth and letter in ")]":
            depth -= 1
        elif letter == "]" or (letter == "," and not depth):
            parts.append(text[start:place].strip())
            start = place + 1
            if letter == "]":
                return tuple(part for part in parts if part), text[start:]
    return tuple(part for part in [*parts, text[start:].strip()] if part), ""
