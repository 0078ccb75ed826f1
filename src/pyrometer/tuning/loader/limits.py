"""Settings that must not be run, or must not be chosen: for lack of memory, shared memory, or because workers would repeat samples."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree
from torch.utils.data import DataLoader, IterableDataset

from pyrometer.loading.settings import LoaderSettings
from pyrometer.loading.watched import WatchedBatches
from pyrometer.loading.worker_memory import free_shared_bytes, shared_bytes
from pyrometer.quantity import Bytes, format_bytes
from pyrometer.tuning.loader.turn import Turn

REPEATED = "every worker would yield the same samples: the IterableDataset does not share its work by get_worker_info()"


@dataclass
class Limits:
    """What bounds the search.

    Attributes:
        max_memory_bytes: for workers and their batches together; `None` for no limit.
        free_shared_bytes: shared memory that was free before; `None` where there is no limit.
        workers_refused: why there can be no workers at all.
        one_worker_only: whether several workers would repeat each other.
    """

    max_memory_bytes: Bytes | None = None
    free_shared_bytes: Bytes | None = None
    workers_refused: str | None = None
    one_worker_only: bool = False

    @classmethod
    def found(cls, max_memory_bytes: Bytes | None) -> Limits:
        """The limits of this machine."""
        return cls(max_memory_bytes=max_memory_bytes, free_shared_bytes=free_shared_bytes())

    def refusal(self, settings: LoaderSettings, turns: Sequence[Turn]) -> str | None:
        """Why these settings cannot be used, as far as the turns so far let it be known."""
        if settings.num_workers and self.workers_refused:
            return self.workers_refused
        if settings.num_workers > 1 and self.one_worker_only:
            return REPEATED
        return self._too_large(settings, turns)

    def _too_large(self, settings: LoaderSettings, turns: Sequence[Turn]) -> str | None:
        needed = predicted_bytes(settings, turns)
        if needed is None or not settings.num_workers:
            return None
        if self.max_memory_bytes is not None and needed > self.max_memory_bytes:
            return f"needs {format_bytes(needed)}, and {format_bytes(self.max_memory_bytes)} are allowed"
        shared = shared_bytes(settings.capacity, turns[-1].bytes_per_batch)
        if self.free_shared_bytes is not None and shared > self.free_shared_bytes:
            free = format_bytes(self.free_shared_bytes)
            return f"its queue needs {format_bytes(shared)} of shared memory, and {free} are free in /dev/shm"
        return None


def predicted_bytes(settings: LoaderSettings, turns: Sequence[Turn]) -> Bytes | None:
    """Memory of workers and queue, from turns that were run; measured, where it is of these very settings.

    `None` before any worker was seen.
    """
    for turn in turns:
        if turn.settings == settings:
            return turn.memory_bytes
    seen = [turn for turn in turns if turn.settings.num_workers]
    if not seen or not settings.num_workers:
        return None if settings.num_workers else 0
    per_worker_bytes = max(turn.per_worker_bytes for turn in seen)
    return settings.num_workers * per_worker_bytes + shared_bytes(settings.capacity, seen[-1].bytes_per_batch)


def repeats_itself(loader: DataLoader[Any]) -> bool | None:
    """Whether two workers of an iterable-style dataset yield the same batches.

    The first two batches of each of two workers are compared. `None` when that cannot be told: too few batches, or batches that
    are all alike.
    """
    if not isinstance(loader.dataset, IterableDataset):
        return False
    two = LoaderSettings(num_workers=2, prefetch_factor=2)
    with contextlib.closing(WatchedBatches(loader, two)) as watched:
        batches = [batch for batch, _ in zip(watched, range(4), strict=False)]
    # Batches come from the workers in turn: 0, 1, 0, 1.
    if len(batches) < 4 or _alike(batches[0], batches[2]):
        return None
    return _alike(batches[0], batches[1]) and _alike(batches[2], batches[3])


def _alike(one: Any, other: Any) -> bool:
    ours, theirs = pytree.tree_leaves(one), pytree.tree_leaves(other)
    return len(ours) == len(theirs) and all(map(_same, ours, theirs))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.shape == other.shape and bool(torch.equal(one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return bool(np.array_equal(one, other))
    return bool(type(one) is type(other) and one == other)
