"""Seeing every operator: torch's dispatch mode, and tensors that are made of other tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode as DispatchMode
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

__all__ = ["DispatchMode", "missing", "plain_tensors", "storage_key", "storages"]


def missing() -> list[str]:
    """What this torch lacks for recording allocations.

    >>> missing()
    []
    """
    probe = torch.empty(1)
    lacking = []
    if not hasattr(probe.untyped_storage(), "_cdata"):
        lacking.append("the identity of storages, so that allocations cannot be told apart")
    elif probe.untyped_storage() is not probe.untyped_storage():
        lacking.append("a lasting object per storage, so that frees are seen too early")
    return lacking


def plain_tensors(tensor: Any) -> Iterator[torch.Tensor]:
    """The tensors with a storage of their own that a tensor consists of: itself, in the common case."""
    if is_traceable_wrapper_subclass(tensor):
        names, _ = tensor.__tensor_flatten__()
        for name in names:
            yield from plain_tensors(getattr(tensor, name))
    elif tensor.layout == torch.strided:
        yield tensor
    elif tensor.layout == torch.sparse_coo:
        yield from (tensor._indices(), tensor._values())  # noqa: SLF001 - the public ones demand a coalesced tensor
    elif tensor.layout in {torch.sparse_csr, torch.sparse_bsr}:
        yield from (tensor.crow_indices(), tensor.col_indices(), tensor.values())
    elif tensor.layout in {torch.sparse_csc, torch.sparse_bsc}:
        yield from (tensor.ccol_indices(), tensor.row_indices(), tensor.values())
    # oneDNN's opaque tensors have no storage that could be looked at.


def storages(tensor: torch.Tensor) -> Iterator[tuple[torch.UntypedStorage, torch.dtype]]:
    """The storages behind a tensor, each with the dtype that is kept in it."""
    for plain in plain_tensors(tensor):
        yield plain.untyped_storage(), plain.dtype


def storage_key(storage: torch.UntypedStorage) -> int:
    """The identity of a storage while it lives; used again after its death."""
    key: int = storage._cdata  # noqa: SLF001
    return key
