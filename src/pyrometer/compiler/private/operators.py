"""Nodes of Inductor's FX graphs: operator, user's line, bytes that the operator alone would move."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable
from typing import Any

import torch

from pyrometer.compiler.user_code import line_outside_torch

GATHERS = ("aten.embedding", "aten.index.", "aten.index_select", "aten.gather")
"""Operators that read of their first input no more than they return."""


def is_operator(node: Any) -> bool:
    """Whether a node computes: no input, no output, no unpacking of a tuple."""
    return bool(node.op == "call_function" and node.target is not operator.getitem)


def op_names(node: Any) -> list[str]:
    """The operator that a node calls, such as aten.add.Tensor; of what a pattern made one call those that it matched."""
    if isinstance(node.target, functools.partial) and node.target.args:
        matched = getattr(node.target.args[0], "nodes", [])
        names = [str(one.target) for one in matched if is_operator(one)]
        if names:
            return names
    name = str(node.target)
    return [str(node.name) if name.startswith("<") or "0x" in name else name]


def is_view(node: Any) -> bool:
    """Whether a node only looks at memory in another way."""
    return bool(getattr(node.target, "is_view", False))


def user_line(node: Any) -> str:
    """The innermost line outside of torch that a node comes from, as `file:line`; empty when there is none."""
    return line_outside_torch(node.meta.get("stack_trace") or "")


def traffic_bytes(node: Any) -> int | None:
    """What an operator reads and writes when it runs as a kernel of its own; `None` where a size is not known.

    Inputs that are broadcast count with what is stored of them.
    """
    if is_view(node):
        return 0
    written = value_bytes(node.meta.get("val"))
    reads = [value_bytes(read.meta.get("val")) for read in node.all_input_nodes]
    if written is None or any(read is None for read in reads):
        return None
    known = [read or 0 for read in reads]
    if known and str(node.target).startswith(GATHERS):
        known[0] = min(known[0], written)
    return written + sum(known)


def value_bytes(value: Any) -> int | None:
    """Bytes that are stored of a tensor, or of all in a tuple; open sizes count as they are in this compilation."""
    if isinstance(value, (list, tuple)):
        parts = [value_bytes(part) for part in value]
        return None if None in parts else sum(part or 0 for part in parts)
    if not isinstance(value, torch.Tensor):
        return 0
    stored = (
        size for size, stride in zip(value.size(), _strides(value), strict=True) if not _is_zero(stride)
    )
    sizes = [_hint(size) for size in stored]
    return None if None in sizes else math.prod(size or 0 for size in sizes) * value.element_size()


def _strides(value: torch.Tensor) -> Iterable[Any]:
    return value.stride() if value.layout == torch.strided else [1] * value.dim()


def _is_zero(stride: Any) -> bool:
    return isinstance(stride, int) and stride == 0


def _hint(size: Any) -> int | None:
    if isinstance(size, int):
        return size
    node: Any = getattr(size, "node", None)
    found = getattr(node, "hint", None)
    return int(found) if isinstance(found, int) else None
