"""What is profiled: a dataset, with how a loader draws from it and puts samples together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data import default_collate as torch_collate

from pyrometer.errors import InputError
from pyrometer.workload.failure import user_code

BARE_BATCH_SIZE = 32


@dataclass(frozen=True)
class Source:
    """A dataset and its surroundings.

    Attributes:
        dataset: with `__getitem__`, or with `__iter__` only.
        kind: `map` or `iterable`.
        collate: puts samples together; converts a single one where there is no automatic batching.
        batch_size: samples per batch; `None` where what the dataset gives is a batch already, or where only the batch sampler knows.
        batching: whether samples are put together.
        indices: iterable of indices, or of lists of indices with `batching`; `None` where there is none that may be used.
        num_workers: of the loader.
        is_loader: whether a loader was given.
    """

    dataset: Any
    kind: Literal["map", "iterable"]
    collate: Callable[[Any], Any]
    batch_size: int | None
    batching: bool
    indices: Any
    num_workers: int = 0
    is_loader: bool = False

    @property
    def num_samples(self) -> int | None:
        """Length of the dataset; `None` where it has none. Of an iterable one it is a promise that nothing checks."""
        if self.kind == "iterable":
            return None
        with user_code("dataset: its __len__"):
            try:
                return len(self.dataset)
            except (TypeError, NotImplementedError):
                return None

    def spread_indices(self, count: int) -> list[int]:
        """Indices at even distances, in an order that does not rise with time, so that drift is not taken for a trend.

        Without a length, the first ones.
        """
        length = self.num_samples
        if length is None:
            return list(range(count))
        taken = min(count, length)
        places = [(2 * number + 1) * length // (2 * taken) for number in range(taken)]
        return places[::2] + places[1::2][::-1]

    def keys(self, count: int) -> list[Any]:
        """What to ask the dataset for: indices at even distances, or what the sampler gives where that is something else."""
        drawn = self.index_batches(1) if self.has_sampler else []
        first = drawn[0][0] if drawn and drawn[0] else 0
        if self.batching and isinstance(first, (int, np.integer)):
            return self.spread_indices(count)
        if not self.has_sampler:
            return self.spread_indices(count)
        size = max(1, len(drawn[0]))
        return [key for batch in self.index_batches(-(-count // size)) for key in batch][:count]

    @property
    def has_sampler(self) -> bool:
        """Whether there is a sampler that can be asked without using it up."""
        return self.indices is not None and iter(self.indices) is not self.indices

    def index_batches(self, count: int) -> list[list[Any]]:
        """Indices of batches as the loader draws them; random state of its samplers must be restored by the caller."""
        if not self.has_sampler:
            size = self.batch_size or 1
            chosen = self.spread_indices(count * size)
            return [chosen[start : start + size] for start in range(0, len(chosen), size)]
        with user_code("sampler: drawing indices"):
            drawn = list(itertools.islice(self.indices, count))
        return [list(one) if self.batching else [one] for one in drawn]

    def fresh_iterator(self) -> Iterator[Any]:
        """A new iterator over an iterable dataset."""
        with user_code("dataset: its __iter__"):
            return iter(self.dataset)


def source_of(given: Any) -> Source:
    """Take a loader or a dataset apart.

    A dataset alone is put together by `default_collate`, 32 at a time.

    Raises:
        InputError: it is neither, it is empty, or it is an iterator, which profiling would use up.

    >>> source_of([1.0, 2.0]).kind
    'map'
    """
    if isinstance(given, DataLoader):
        return _of_loader(given)
    if not hasattr(given, "__getitem__") and not hasattr(given, "__iter__"):
        raise InputError(
            f"loader_or_dataset: got {type(given).__name__}; it must be a DataLoader, or a dataset with __getitem__ or __iter__"
        )
    source = Source(given, _kind(given), torch_collate, BARE_BATCH_SIZE, batching=True, indices=None)
    _require_samples(source)
    return source


def _of_loader(loader: DataLoader[Any]) -> Source:
    batching = loader.batch_sampler is not None
    kind = _kind(loader.dataset)
    source = Source(
        loader.dataset,
        kind,
        loader.collate_fn,
        loader.batch_size,
        batching=batching,
        indices=None if kind == "iterable" else (loader.batch_sampler if batching else loader.sampler),
        num_workers=loader.num_workers,
        is_loader=True,
    )
    _require_samples(source)
    return source


def _kind(dataset: Any) -> Literal["map", "iterable"]:
    by_index = hasattr(dataset, "__getitem__") and not isinstance(dataset, IterableDataset)
    return "map" if by_index else "iterable"


def _require_samples(source: Source) -> None:
    if source.num_samples == 0:
        raise InputError("dataset: it is empty; there must be at least one sample")
    one_shot = source.kind == "iterable" and not isinstance(source.dataset, IterableDataset)
    if one_shot and iter(source.dataset) is source.dataset:
        raise InputError(
            f"dataset: got {type(source.dataset).__name__}, an iterator, which profiling would use up; give what it comes from"
        )
