"""The same work on batches of another size."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import torch
from torch.utils import _pytree as pytree

from pyrometer.errors import InputError
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.changes.micro_batches import Parts, num_samples
from pyrometer.workload.failure import user_code
from pyrometer.workload.inference import Inference
from pyrometer.workload.inputs import Arguments, adapted
from pyrometer.workload.training import Training
from pyrometer.workload.variant import Variant

MakeBatch: TypeAlias = Callable[[int], Any]


def with_batch(
    work: Inference | Training, batch: int, make_batch: MakeBatch | None = None
) -> Inference | Training:
    """The same work with so many samples per step; with accumulation, per batch of a step.

    Of a step from `micro_batched` it is the whole batch, of which the parts are made.

    Without a function that makes batches, samples are repeated or left out.

    Raises:
        InputError: another kind of workload.
        UserProgramError: making the batch raised.
    """
    if not isinstance(work, (Inference, Training)):
        raise InputError(
            f"work: got {type(work).__name__}; its batch cannot be changed, give pm.Inference(…) or pm.Training(…)"
        )
    if make_batch is None and isinstance(work, Inference):
        return work.variant(batch_size=batch)
    other: Any = copy.copy(work)
    if isinstance(work, Training) and isinstance(work.batches, Parts):
        inner = copy.copy(work)
        inner.batches = work.batches.whole
        other.batches = work.batches.over(with_batch(inner, batch, make_batch).batches)  # type: ignore[union-attr]
        return other  # type: ignore[no-any-return]
    if make_batch is None:
        other.batches = _Resized(other.batches, batch)
        return other  # type: ignore[no-any-return]
    with user_code(f"make_batch({batch})"):
        made = make_batch(batch)
    if isinstance(other, Inference):
        other.inputs = made
    else:
        other.batches = [made]
    return other  # type: ignore[no-any-return]


class _Resized:
    """Batches with samples repeated or left out; a fixed list of batches is resized once."""

    def __init__(self, batches: Iterable[Any], size: int) -> None:
        self._batches = batches
        self._size = size
        self._made: dict[int, tuple[Any, Any]] = {}

    def __iter__(self) -> Iterator[Any]:
        keeps = isinstance(self._batches, (list, tuple))
        with contextlib.closing(BatchStream(self._batches)) as stream:
            while True:
                batch = stream.next()
                if not keeps:
                    yield self._resized(batch)
                    continue
                if id(batch) not in self._made:
                    self._made[id(batch)] = batch, self._resized(batch)
                yield self._made[id(batch)][1]

    def _resized(self, batch: Any) -> Any:
        num_samples(batch)  # says so where there are none
        resized = adapted(Arguments((batch,), {}), Variant(batch_size=self._size)).args[0]
        return pytree.tree_map_only(torch.Tensor, _with_own_storage, resized)


def _with_own_storage(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that holds no more than it shows: what was cut off would count as memory of the batch."""
    is_part = tensor.untyped_storage().nbytes() > tensor.numel() * tensor.element_size()
    return tensor.clone() if is_part else tensor
