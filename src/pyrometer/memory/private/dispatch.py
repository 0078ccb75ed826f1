"""Seeing every operator: torch's dispatch mode, and tensors that are made of other tensors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from pyrometer.workload.whereabouts.dispatch import DispatchMode

__all__ = [
    "DispatchMode",
    "is_composite",
    "plain_tensors",
    "run_composite",
    "storage_key",
    "storages",
    "without_copy",
]


@cache
def is_composite(operator: Any, device: str) -> bool:
    """Whether an operator has no kernel of its own on a device and only calls others.

    >>> is_composite(torch.ops.aten.conv2d.default, "cpu"), is_composite(torch.ops.aten.mm.default, "cpu")
    (True, False)
    """
    if operator in _WHOLE:
        return False
    has = getattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", None)  # noqa: SLF001
    name = operator.name()
    try:
        return has is not None and has(name, COMPOSITE) and not has(name, device.upper())
    except (
        RuntimeError
    ):  # an operator of TorchScript, which no dispatcher knows, or a device without a name there
        return False


COMPOSITE = "CompositeImplicitAutograd"

_WHOLE = (torch.ops.aten.linear.default, torch.ops.aten.matmul.default)
"""These look whether anybody watches, and do without writing in place then: watched inside, they take more memory."""


def run_composite(operator: Any, args: Any, kwargs: Any) -> Any:
    """Run an operator by calling the others that it consists of, each of which is dispatched."""
    key = getattr(torch._C.DispatchKey, COMPOSITE)  # noqa: SLF001
    return operator._op_dk(key, *args, **kwargs)  # noqa: SLF001 - `decompose` prefers rewrites in Python to the real one


def plain_tensors(tensor: Any) -> Iterator[torch.Tensor]:
    """The tensors with a storage of their own that a tensor consists of: itself, in the common case."""
    if is_traceable_wrapper_subclass(tensor):
        names, _ = tensor.__tensor_flatten__()
        for name in names:
            yield from plain_tensors(getattr(tensor, name))
    elif torch.nn.parameter.is_lazy(tensor):
        return  # nothing is there yet
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


def without_copy(sparse: torch.Tensor) -> torch.Tensor:
    """Another sparse tensor over the same indices and values, as autograd makes of a gradient that it takes over."""
    taken: torch.Tensor = torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors(  # noqa: SLF001
        sparse.sparse_dim(),
        sparse.dense_dim(),
        sparse.shape,
        sparse._indices(),  # noqa: SLF001 - the public ones demand a coalesced tensor
        sparse._values(),  # noqa: SLF001
        dtype=sparse.dtype,
        layout=sparse.layout,
        device=sparse.device,
        is_coalesced=sparse.is_coalesced(),
    )
    return taken
