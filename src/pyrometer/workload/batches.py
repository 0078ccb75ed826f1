"""Where a training step's batches come from."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader

from pyrometer.errors import InputError

_ENDED = object()


class BatchStream:
    """Endless batches from an iterable that is started anew whenever it ends.

    A `DataLoader` is copied, down to its samplers and generators but not its dataset: so two streams of one loader
    draw the same, and neither the other nor the user's own loop over it is disturbed. `close()` ends the workers.

    >>> stream = BatchStream([1, 2])
    >>> stream.next(), stream.next(), stream.next()
    (1, 2, 1)
    """

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = own_loader(batches) if isinstance(batches, DataLoader) else batches
        self._iterator: Iterator[Any] | None = None
        self._num_batches = 0

    def next(self) -> Any:
        """The next batch.

        Raises:
            InputError: there is none, also after starting anew.
        """
        if self._iterator is None:
            self._iterator = iter(self._batches)
        batch = next(self._iterator, _ENDED)
        if batch is _ENDED:
            self._iterator = iter(self._batches)
            batch = next(self._iterator, _ENDED)
        if batch is _ENDED:
            raise InputError(self._exhausted())
        self._num_batches += 1
        return batch

    def close(self) -> None:
        """Let go of the iterator and end its worker processes."""
        iterator, self._iterator = self._iterator, None
        if isinstance(self._batches, DataLoader):
            self._batches._iterator = None  # noqa: SLF001 - the reference that keeps persistent workers alive
            shutdown = getattr(iterator, "_shutdown_workers", None)
            if shutdown is not None:
                shutdown()

    def _exhausted(self) -> str:
        if self._num_batches == 0:
            return "batches: the iterable is empty; a training workload needs at least one batch"
        return (
            f"batches: ended after {self._num_batches} and cannot be started anew, because it is an iterator; "
            "give what it comes from: a DataLoader, a list, or an object whose __iter__ starts over"
        )


def own_loader(loader: DataLoader[Any]) -> DataLoader[Any]:
    """A copy that draws the same and disturbs nobody: samplers and generators are copied along, the dataset is not."""
    own: DataLoader[Any] = _copied_down_to_generators(loader, {})
    own._iterator = None  # noqa: SLF001 - else a loader with persistent workers hands out the user's own iterator
    return own


def _copied_down_to_generators(part: Any, made: dict[int, Any]) -> Any:
    """A shallow copy of a loader, its samplers and their random generators; what they share they go on sharing."""
    if id(part) in made:
        return made[id(part)]
    if isinstance(part, torch.Generator):
        own: Any = torch.Generator(part.device).set_state(part.get_state())
    elif hasattr(part, "__dict__"):
        own = copy.copy(part)
        for name in {"sampler", "batch_sampler", "generator"}.intersection(vars(part)):
            vars(own)[name] = _copied_down_to_generators(vars(part)[name], made)
    else:
        own = part
    made[id(part)] = own
    return own
