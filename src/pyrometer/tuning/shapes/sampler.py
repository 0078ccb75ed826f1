"""Batches of sequences of like length, so that little is padded; still in a new random order every epoch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch.utils import _pytree as pytree
from torch.utils.data import Sampler, default_collate

from pyrometer.errors import InputError
from pyrometer.tuning.shapes.planning import plan_edges
from pyrometer.tuning.shapes.record import SamplingReport

Batch = list[int]
T = TypeVar("T")


class BucketBatchSampler(Sampler[Batch]):
    """A `batch_sampler` for a `DataLoader`: every sample once per epoch, in batches from one bucket of lengths.

    Samples are shuffled within their bucket and batches among each other; what is left over at the end of the buckets is
    put together in order of length. Every rank draws the same order and takes its share, as many batches as the others:
    without `drop_last` some batches come twice where they cannot be shared out equally.

    Args:
        lengths: of every sample of the data set.
        batch_size: samples per batch.
        max_tokens: most samples of a batch times its longest; instead of `batch_size`.
        edges: upper ends of the buckets; by default chosen for these lengths (`plan_edges`), `num_buckets` of them.
        num_buckets: how many.
        shuffle: whether the order changes with the epoch.
        drop_last: leave out batches that are not full, and batches that cannot be shared out equally among the ranks.
        seed: of the order, together with the epoch.
        rank: of this process.
        world_size: number of processes.
        pad_value: what `collate` pads with.

    Raises:
        InputError: lengths that are no whole numbers of at least 1, both or neither of `batch_size` and `max_tokens`, a sample longer than `max_tokens` or the last edge, or a
            rank that does not exist.

    >>> sampler = BucketBatchSampler([5, 90, 6, 91], batch_size=2, num_buckets=2)
    >>> sorted(sorted(batch) for batch in sampler)
    [[0, 2], [1, 3]]
    """

    def __init__(
        self,
        lengths: Sequence[int],
        *,
        batch_size: int | None = None,
        max_tokens: int | None = None,
        edges: Sequence[int] | None = None,
        num_buckets: int = 8,
        shuffle: bool = True,
        drop_last: bool = False,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        pad_value: float = 0,
    ) -> None:
        self._lengths = whole_lengths(lengths)
        if (batch_size is None) == (max_tokens is None):
            raise InputError("batch_size and max_tokens: give one of them, for example batch_size=32")
        if min(limit for limit in (batch_size, max_tokens) if limit is not None) < 1:
            raise InputError(f"batch_size, max_tokens: got {batch_size}, {max_tokens}; it must be at least 1")
        if not 0 <= rank < world_size:
            raise InputError(f"rank: got {rank} of {world_size}; legal is from 0 to world_size - 1")
        if edges is None:
            edges = plan_edges(self._lengths.tolist(), num_buckets).pareto[-1].edges
        self._edges = sorted(edges)
        limit = self._edges[-1] if max_tokens is None else min(max_tokens, self._edges[-1])
        longest = int(self._lengths.argmax())
        if self._lengths[longest] > limit:
            raise InputError(
                f"lengths: sample {longest} has {self._lengths[longest]}, more than {limit}; raise max_tokens or the last "
                "edge, or cut the sample"
            )
        self.batch_size, self.max_tokens = batch_size, max_tokens
        self.shuffle, self.drop_last, self.seed = shuffle, drop_last, seed
        self.rank, self.world_size = rank, world_size
        self.pad_value = pad_value
        self.epoch = 0

    @property
    def edges(self) -> list[int]:
        """Upper ends of the buckets, rising."""
        return list(self._edges)

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of another epoch; to be called before each, on every rank alike."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[Batch]:
        """This rank's batches of the epoch."""
        return iter(self._own(self._all_batches()))

    def __len__(self) -> int:
        """Batches of this rank in the present epoch."""
        return len(self._own(self._all_batches()))

    def collate(self, samples: Sequence[Any]) -> Any:
        """Make a batch with every sequence padded to the bucket of the longest: the `collate_fn` of the `DataLoader`.

        So batches have as many lengths as there are edges, and what is compiled for those finds its inputs padded already,
        by the loader's workers. Of samples with several parts those are padded that are as long as the first tensor with
        dimensions; all else is left to `torch.utils.data.default_collate`.

        Args:
            samples: tensors `(length, …)`, or tuples, lists or dicts that hold such.

        Raises:
            InputError: a sample holds no tensor with dimensions, or is longer than the last edge.

        >>> sampler = BucketBatchSampler([2, 3, 7, 8], batch_size=2, edges=[4, 8])
        >>> sampler.collate([torch.ones(2), torch.ones(3)]).shape
        torch.Size([2, 4])
        """
        lengths = [_length(sample) for sample in samples]
        place = int(np.searchsorted(self._edges, max(lengths)))
        if place == len(self._edges):
            raise InputError(
                f"samples: one has the length {max(lengths)}, beyond the last edge, {self._edges[-1]}; give edges that cover it"
            )
        edge = self._edges[place]
        padded = [
            pytree.tree_map_only(torch.Tensor, partial(self._padded, length, edge), sample)
            for sample, length in zip(samples, lengths, strict=True)
        ]
        return default_collate(padded)

    def _padded(self, length: int, edge: int, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() == 0 or tensor.shape[0] != length:
            return tensor
        return torch.constant_pad_nd(tensor, [0, 0] * (tensor.dim() - 1) + [0, edge - length], self.pad_value)

    def report(self) -> SamplingReport:
        """Padding of this epoch's batches, beside that of batches drawn at random with as many samples each."""
        batches = self._all_batches()
        order = np.random.default_rng(self.seed).permutation(len(self._lengths)).tolist()
        drawn, start = [], 0
        for batch in batches:
            drawn.append(order[start : start + len(batch)])
            start += len(batch)
        return SamplingReport(
            num_sequences=len(self._lengths),
            num_batches=len(batches),
            padding_before=batch_padding(self._lengths, drawn),
            padding_after=batch_padding(self._lengths, batches),
        )

    def _all_batches(self) -> list[Batch]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        batches: list[Batch] = []
        rest: list[int] = []
        owner = np.searchsorted(self._edges, self._lengths)
        for bucket in range(len(self._edges)):
            members = self._shuffled(np.flatnonzero(owner == bucket).tolist(), generator)
            full, left = self._cut(members)
            batches += full
            rest += left
        if not self.drop_last:
            rest.sort(key=lambda sample: self._lengths[sample])
            full, left = self._cut(rest)
            batches += [*full, *([left] if left else [])]
        return self._shuffled(batches, generator)

    def _cut(self, members: list[int]) -> tuple[list[Batch], list[int]]:
        """Full batches in the order given, and what is left over."""
        full: list[Batch] = []
        batch: Batch = []
        longest = 0
        for sample in members:
            longest = max(longest, int(self._lengths[sample]))
            if batch and not self._fits(len(batch) + 1, longest):
                full.append(batch)
                batch, longest = [], int(self._lengths[sample])
            batch.append(sample)
        if batch and self.batch_size is not None and len(batch) == self.batch_size:
            full.append(batch)
            batch = []
        return full, batch

    def _fits(self, num_samples: int, longest: int) -> bool:
        if self.batch_size is not None:
            return num_samples <= self.batch_size
        assert self.max_tokens is not None
        return num_samples * longest <= self.max_tokens

    def _own(self, batches: list[Batch]) -> list[Batch]:
        """This rank's share: every `world_size`-th batch, as many as the other ranks have."""
        if self.drop_last:
            even = batches[: len(batches) // self.world_size * self.world_size]
        else:
            missing = -len(batches) % self.world_size
            repeats = math.ceil(missing / max(len(batches), 1))
            even = batches + (batches * repeats)[:missing]
        return even[self.rank :: self.world_size]

    def _shuffled(self, items: list[T], generator: torch.Generator) -> list[T]:
        if not self.shuffle:
            return items
        return [items[place] for place in torch.randperm(len(items), generator=generator).tolist()]


def _length(sample: Any) -> int:
    """Of the first tensor of a sample that has dimensions."""
    leaves = (leaf for leaf in pytree.tree_leaves(sample) if isinstance(leaf, torch.Tensor) and leaf.dim())
    first = next(leaves, None)
    if first is None:
        raise InputError(
            f"samples: got {type(sample).__name__} without a tensor that has a length; legal are tensors (length, …), or tuples, "
            "lists and dicts that hold one"
        )
    return first.shape[0]


def whole_lengths(lengths: Sequence[int] | npt.NDArray[Any] | torch.Tensor) -> npt.NDArray[np.int64]:
    """Lengths of sequences as an array.

    Raises:
        InputError: there are none, or one is no whole number of at least 1; says which.

    >>> whole_lengths([3, 4.0]).tolist()
    [3, 4]
    >>> whole_lengths([3, 1.5])
    Traceback (most recent call last):
    pyrometer.errors.InputError: lengths: number 1 is 1.5; legal are whole numbers of at least 1
    """
    given = lengths.detach().cpu().numpy() if isinstance(lengths, torch.Tensor) else lengths
    values = given.tolist() if isinstance(given, np.ndarray) else list(given)
    if not isinstance(values, list) or not values:
        raise InputError("lengths: there must be at least one, and each at least 1")
    for place, value in enumerate(values):
        number = value.item() if isinstance(value, (np.generic, torch.Tensor)) and value.ndim == 0 else value
        whole = type(number) is int or (isinstance(number, float) and number.is_integer())
        if not whole or number < 1:
            raise InputError(f"lengths: number {place} is {number!r}; legal are whole numbers of at least 1")
    return np.array([int(value) for value in values], dtype=np.int64)


def batch_padding(lengths: Sequence[int] | npt.NDArray[np.int64], batches: Iterable[Batch]) -> float:
    """Share of padding when every batch is padded to its longest.

    >>> batch_padding([1, 4], [[0, 1]])
    0.375
    """
    real = padded = 0
    for batch in batches:
        own = [int(lengths[sample]) for sample in batch]
        real, padded = real + sum(own), padded + len(own) * max(own, default=0)
    return 1 - real / padded if padded else 0.0
