"""A small tensor that keeps a big storage alive.

A view keeps the whole storage that it looks into. On the CPU some losses do so too without being views: `mse_loss`,
`smooth_l1_loss`, `binary_cross_entropy` and `soft_margin_loss` reduce in place, and the scalar that they return owns the
storage of all the elements; detaching it changes nothing.
"""

from __future__ import annotations

import torch

from pyrometer.memory.holders.record import PinnedStorage
from pyrometer.memory.private import autograd_nodes, dispatch


def pinned_storage(tensor: torch.Tensor) -> PinnedStorage | None:
    """What a tensor keeps alive beyond what it needs; `None` when that is nothing.

    >>> pinned_storage(torch.zeros(1000)[:10]).pinned_bytes, pinned_storage(torch.zeros(1000))
    (3960, None)
    """
    with autograd_nodes.as_is():
        storages = {
            dispatch.storage_key(storage): storage.nbytes() for storage, _ in dispatch.storages(tensor)
        }
        needed = sum(
            plain_tensor.numel() * plain_tensor.element_size()
            for plain_tensor in dispatch.plain_tensors(tensor)
        )
        held = sum(storages.values())
        if held <= needed:
            return None
        is_scalar = tensor.numel() == 1
        is_view = tensor._is_view() or tensor.storage_offset() > 0  # noqa: SLF001
        detached = ".detach()" if tensor.requires_grad else ""
    return PinnedStorage(
        needed_bytes=needed,
        storage_bytes=held,
        pinned_bytes=held - needed,
        reason="view" if is_view else "oversized scalar" if is_scalar else "oversized storage",
        fix=".item()" if is_scalar else f"{detached}.clone()",
    )
