"""Functions that read a tensor across its memory: each element from another cache line than its neighbour.

An elementwise function writes its result along memory. Where one of its operands has the same shape and another layout
(`x + y.t()`), walking along the result jumps through that operand, and of each cache line that is fetched one element
is used.
"""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType
from typing import Any, NamedTuple

import torch

from pyrometer.source.ownership import owner_of
from pyrometer.workload.program.record import StridedRead

LEAST_ELEMENTS = 65_536
"""Below this the tensor fits into a near cache, where it makes little difference."""

CACHE_LINE = 64
"""Bytes that come together from memory on x86 and most Arm processors; GPUs fetch 32 or more."""

MOVING = frozenset(
    ["contiguous", "clone", "copy", "to", "reshape", "flatten", "cat", "stack", "concat", "permute", "type", "float",
     "half", "bfloat16", "double", "cpu", "cuda", "repeat", "unfold"]
)  # fmt: skip
"""What lays data out anew, and has to read them somehow."""

LIBRARY = frozenset(
    ["matmul", "mm", "bmm", "addmm", "baddbmm", "linear", "bilinear", "einsum", "tensordot", "mv", "dot", "conv1d",
     "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "scaled_dot_product_attention",
     "multi_head_attention_forward", "embedding", "getitem", "setitem", "gather", "index_select", "backward"]
)  # fmt: skip
"""What takes transposed operands as they are, or picks elements anyway."""

PLAIN = (torch.Tensor, torch.nn.Parameter)
"""Subclasses need have no memory of their own."""


class StridedPlace(NamedTuple):
    """What makes two strided reads the same one."""

    function: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    file: str | None
    line: int | None


def strided_operands(name: str, operands: list[torch.Tensor], result: Any) -> list[torch.Tensor]:
    """The operands that a call read across their memory.

    >>> x = torch.zeros(512, 512)
    >>> len(strided_operands("add", [x, x.t()], x + x.t())), len(strided_operands("exp", [x.t()], x.t().exp()))
    (1, 0)
    """
    if name in MOVING or name in LIBRARY or type(result) not in PLAIN or _is_small(result):
        return []
    along = _dense_dimension(result)
    if along is None:
        return []
    return [
        operand
        for operand in operands
        if type(operand) in PLAIN
        and operand.shape == result.shape
        and operand.layout == torch.strided
        and 0 not in operand.stride()
        and operand.stride(along) * operand.element_size() >= CACHE_LINE
        and operand.data_ptr() != result.data_ptr()
    ]


def strided_reads(counts: Counter[StridedPlace]) -> list[StridedRead]:
    """As records, the largest first."""
    reads = [
        StridedRead(
            function=place.function,
            shape=list(place.shape),
            strides=list(place.strides),
            calls=calls,
            file=place.file,
            line=place.line,
        )
        for place, calls in counts.items()
    ]
    return sorted(reads, key=lambda read: -read.calls * torch.Size(read.shape).numel())


def strided_place(name: str, tensor: torch.Tensor) -> StridedPlace:
    """The read with the line of the user's code that is running."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - documented, and a stack of all frames costs far more
    while frame is not None and owner_of(frame.f_code.co_filename, frame.f_code.co_name) != "user":
        frame = frame.f_back
    file, line = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else (None, None)
    return StridedPlace(name, tuple(tensor.shape), tensor.stride(), file, line)


def _is_small(tensor: torch.Tensor) -> bool:
    return tensor.numel() < LEAST_ELEMENTS or tensor.layout != torch.strided


def _dense_dimension(tensor: torch.Tensor) -> int | None:
    """The dimension whose elements are neighbours in memory."""
    dense = [i for i, size in enumerate(tensor.shape) if size > 1 and tensor.stride(i) == 1]
    return dense[-1] if dense else None
