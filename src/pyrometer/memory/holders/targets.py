"""What is looked for: tensors, and everything else that keeps their storages alive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pyrometer.errors import InputError
from pyrometer.memory.holders import kinds
from pyrometer.memory.private import dispatch


class Targets:
    """The wanted tensors, found again by object or by storage.

    A view of a wanted tensor, or a tensor that shares its storage, is as good as the tensor: it keeps the same bytes alive.
    """

    def __init__(self, wanted: Sequence[Any]) -> None:
        self.count = len(wanted)
        self.by_id: dict[int, tuple[int, ...]] = {}
        self.by_storage: dict[int, tuple[int, ...]] = {}
        for index, one in enumerate(wanted):
            for key in self._keys(one):
                self.by_storage[key] = (*self.by_storage.get(key, ()), index)
            self.by_id[id(one)] = (*self.by_id.get(id(one), ()), index)

    def recognise(self, found: Any, kind: kinds.Kind) -> tuple[int, ...]:
        """The numbers of the wanted tensors that an object keeps alive by being one of them; remembered by its id."""
        known = self.by_id.get(id(found))
        if known is not None:
            return known
        storage = found if kind is kinds.Kind.STORAGE else _storage(found)
        indices = self.by_storage.get(dispatch.storage_key(storage), ()) if storage is not None else ()
        if indices:
            self.by_id[id(found)] = indices
        return indices

    @staticmethod
    def _keys(one: Any) -> list[int]:
        if kinds.is_kind(one, torch.UntypedStorage):
            return [dispatch.storage_key(one)]
        if not kinds.is_kind(one, torch.Tensor):
            raise InputError(
                f"tensors: got {type(one).__name__}; legal are tensors and their untyped storages"
            )
        return [dispatch.storage_key(storage) for storage, _ in dispatch.storages(one)]


def _storage(tensor: Any) -> Any:
    """The storage of a tensor; `None` where there is none (sparse, opaque)."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None
