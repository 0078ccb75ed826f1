"""Which tensors can be looked at, and where they lie."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree

from pyrometer.numerics.private.dispatch import is_transformed

_PLAIN = {torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.nn.Parameter)}


def has_values(tensor: Any) -> bool:
    """Whether an object is a plain dense tensor that holds numbers, floating-point ones of at least 16 bits.

    >>> has_values(torch.ones(2)), has_values(torch.ones(0)), has_values(torch.ones(2, device="meta")), has_values(3)
    (True, False, False, False)
    """
    return (
        isinstance(tensor, torch.Tensor)
        and type(tensor) in _PLAIN
        and tensor.layout == torch.strided
        and not tensor.is_nested  # ragged ones of the older kind say that they are strided
        and tensor.device.type != "meta"
        and tensor.numel() > 0
        and (tensor.element_size() > 1 or not tensor.is_floating_point())
        and not is_transformed(tensor)
    )


def memory_key(tensor: torch.Tensor) -> tuple[str, int]:
    """The memory that a tensor lies in: views have that of their base; it is used again after its end."""
    return tensor.device.type, tensor.untyped_storage().data_ptr()


def floating_tensors(value: Any) -> list[torch.Tensor]:
    """The tensors with floating-point numbers in an output of any nesting, also in the attributes of objects."""
    found: list[Any] = []
    for leaf in pytree.tree_leaves(value):
        found += [leaf] if isinstance(leaf, torch.Tensor) else getattr(leaf, "__dict__", {}).values()
    return [one for one in found if has_values(one) and one.is_floating_point()]
