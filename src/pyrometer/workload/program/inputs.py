"""The tensors that a step is given, by where they stand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from pyrometer.workload.inputs import Arguments
from pyrometer.workload.program.modules import name_of_dtype
from pyrometer.workload.program.record import InputTensor


def input_tensors(value: Any) -> list[InputTensor]:
    """Every tensor within a batch or the arguments of a call, however nested.

    >>> [one.name for one in input_tensors({"ids": torch.zeros(2), "masks": [torch.zeros(2), torch.zeros(3)]})]
    ['ids', 'masks.0', 'masks.1']
    """
    return [_record(name or "0", tensor) for name, tensor in _named(value, "", 0)]


def _named(value: Any, name: str, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
        return
    for key, inner in _parts(value) if depth < 8 else ():
        yield from _named(inner, f"{name}.{key}" if name else key, depth + 1)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Arguments):
        yield from ((str(i), arg) for i, arg in enumerate(value.args))
        yield from value.kwargs.items()
    elif isinstance(value, Mapping):
        yield from ((str(key), item) for key, item in value.items())
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        yield from zip(value._fields, value, strict=True)
    elif isinstance(value, (list, tuple)):
        yield from ((str(i), item) for i, item in enumerate(value))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))


def _record(name: str, tensor: torch.Tensor) -> InputTensor:
    strided = tensor.layout == torch.strided
    contiguous = not strided or tensor.is_contiguous()
    return InputTensor(
        name=name,
        shape=list(tensor.shape),
        dtype=name_of_dtype(tensor),
        device=str(tensor.device),
        num_bytes=tensor.numel() * tensor.element_size(),
        pinned=strided and tensor.device.type == "cpu" and tensor.is_pinned(),
        contiguous=contiguous,
        channels_last=strided
        and tensor.dim() == 4
        and not contiguous
        and tensor.is_contiguous(memory_format=torch.channels_last),
    )
