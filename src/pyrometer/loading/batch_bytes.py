"""How many bytes a batch holds, whatever it is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from pyrometer.quantity import Bytes


def batch_bytes(batch: Any) -> Bytes:
    """Bytes of the tensors, arrays and texts of a batch; what several views look at counts once, and whole.

    >>> batch_bytes({"x": torch.zeros(2, 3), "name": "ab"}), batch_bytes([np.zeros(4, dtype=np.int8), b"xyz"])
    (26, 7)
    """
    return sum(dict(_parts(batch, set())).values())


def _parts(part: Any, seen: set[int]) -> Iterator[tuple[int, Bytes]]:
    """Bytes of every leaf, by what tells leaves apart; objects are looked into by their attributes."""
    if id(part) in seen:
        return
    seen.add(id(part))
    if isinstance(part, torch.Tensor):
        yield from _storages(part)
    elif isinstance(part, np.ndarray):
        yield id(part), part.nbytes
    elif isinstance(part, (str, bytes, bytearray)):
        yield id(part), len(part)
    else:
        for inner in _inner(part):
            yield from _parts(inner, seen)


def _inner(part: Any) -> list[Any]:
    if isinstance(part, Mapping):
        return list(part.values())
    if isinstance(part, (list, tuple, set)):
        return list(part)
    if dataclasses.is_dataclass(part):
        return [getattr(part, field.name, None) for field in dataclasses.fields(part)]
    return list(getattr(part, "__dict__", {}).values())


def _storages(tensor: torch.Tensor) -> Iterator[tuple[int, Bytes]]:
    """Whole storages, since those are what workers share: a view of a large tensor sends all of it."""
    if tensor.layout == torch.strided:
        storage = tensor.untyped_storage()
        yield storage.data_ptr() or id(tensor), storage.nbytes()
    elif tensor.layout == torch.sparse_coo:
        whole = tensor.coalesce()
        for inner in (whole.indices(), whole.values()):
            yield from _storages(inner)
    elif not tensor.is_nested:
        yield from _storages(tensor.values())
