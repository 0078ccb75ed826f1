"""What functions are given and return: its form, its content, and how to hand it out again."""

from __future__ import annotations

import copy
import dataclasses
import enum
import types
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from pyrometer.quantity import Bytes

CONSTANTS = (
    type(None), bool, int, float, complex, str, bytes, slice, range, type, torch.dtype, torch.device, torch.Size,
    torch.layout, torch.memory_format, enum.Enum, np.dtype, np.generic, types.FunctionType, types.BuiltinFunctionType,
)  # fmt: skip
"""Values that may be handed out again as they are."""


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same nested value with other leaves; dataclasses are looked into as containers are.

    >>> mapped({"a": [1, 2]}, lambda leaf: leaf + 1)
    {'a': [2, 3]}
    """

    def of_leaf(leaf: Any) -> Any:
        if not dataclasses.is_dataclass(leaf) or isinstance(leaf, type):
            return change(leaf)
        twin = copy.copy(leaf)
        for field in dataclasses.fields(leaf):
            object.__setattr__(twin, field.name, mapped(getattr(leaf, field.name), change))
        return twin

    return pytree.tree_map(of_leaf, value)


def leaves_of(value: Any) -> list[Any]:
    """What is in a nested value, in order."""
    leaves: list[Any] = []
    mapped(value, leaves.append)
    return leaves


def is_plain_tensor(leaf: Any) -> bool:
    """Whether a tensor can be copied by its elements: no subclass with a life of its own, and strided."""
    return type(leaf) in {torch.Tensor, torch.nn.Parameter} and leaf.layout is torch.strided


class Same:
    """An object that is only the same as itself; it is kept, so that no other can take its place in memory."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self._value is other._value

    __hash__ = None  # type: ignore[assignment]


def form_of(value: Any) -> Any:
    """What must agree for one value to stand in for another: structure, types, shapes and dtypes, but not the content.

    >>> form_of([torch.zeros(2), 1]) == form_of([torch.ones(2), 5])
    True
    """
    return str(pytree.tree_structure(value)), [_form_of_leaf(leaf) for leaf in leaves_of(value)]


def _form_of_leaf(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return (type(leaf), tuple(leaf.shape), leaf.dtype, leaf.device, leaf.requires_grad)
    if isinstance(leaf, np.ndarray):
        return (type(leaf), leaf.shape, leaf.dtype)
    return (type(leaf),)


class Fingerprints:
    """Contents in short, as long as no more bytes are looked at than is allowed; beyond that nothing is told."""

    def __init__(self, most_bytes: Bytes) -> None:
        self._left = most_bytes

    def of(self, value: Any) -> list[Any] | None:
        """Equal for values with the same content, bit by bit; null where that cannot be told."""
        prints = [self._of_leaf(leaf) for leaf in leaves_of(value)]
        return None if any(one is None for one in prints) else prints

    def _of_leaf(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return self._of_tensor(leaf)
        if isinstance(leaf, np.ndarray):
            return None if leaf.dtype.hasobject else self._of_bytes(np.ascontiguousarray(leaf))
        if isinstance(leaf, CONSTANTS):
            return (type(leaf), repr(leaf))
        return Same(leaf)

    def _of_tensor(self, tensor: torch.Tensor) -> Any:
        size = tensor.numel() * tensor.element_size()
        if not is_plain_tensor(tensor) or tensor.is_meta or tensor.is_quantized or size > self._left:
            return None
        if not size:
            return tuple(tensor.shape)
        flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
        return self._of_bytes(flat.cpu().numpy())

    def _of_bytes(self, array: Any) -> Any:
        self._left -= array.nbytes
        return (array.shape, zlib.crc32(array), zlib.adler32(array)) if self._left >= 0 else None


def kept(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, without a graph."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    span = 1 + sum((size - 1) * stride for size, stride in zip(plain.shape, plain.stride(), strict=True))
    if not plain.numel():
        return plain.clone()
    flat = torch.as_strided(plain, (span,), (1,), plain.storage_offset()).clone()
    return torch.as_strided(flat, plain.shape, plain.stride())


def bytes_of(value: Any) -> Bytes:
    """Memory that copies of the tensors and arrays in a value take."""
    return sum(
        leaf.numel() * leaf.element_size() if isinstance(leaf, torch.Tensor) else leaf.nbytes
        for leaf in leaves_of(value)
        if isinstance(leaf, (torch.Tensor, np.ndarray))
    )


Maker = Callable[[], Any]


def maker_of(value: Any, of_leaf: Callable[[Any], Maker]) -> Maker:
    """What makes the same nested value anew in each call, from makers of its leaves; lists and dicts are fresh ones."""
    if type(value) in {list, tuple} and all(isinstance(part, CONSTANTS) for part in value):
        return value.copy if isinstance(value, list) else lambda: value
    if type(value) is tuple and len(value) == 2:
        first, second = (maker_of(part, of_leaf) for part in value)
        return lambda: (first(), second())
    if type(value) in {list, tuple}:
        kind, makers = type(value), [maker_of(part, of_leaf) for part in value]
        return lambda: kind([make() for make in makers])
    if _is_container(value):
        made_of = mapped(value, of_leaf)
        return lambda: mapped(made_of, lambda make: make())
    return of_leaf(value)


def _is_container(value: Any) -> bool:
    if dataclasses.is_dataclass(value):
        return not isinstance(value, type)
    return not pytree.tree_structure(value).is_leaf()
