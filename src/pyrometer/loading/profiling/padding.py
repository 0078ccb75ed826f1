"""Padding in batches: found by the lengths of samples, by masks, by lengths in the batch, or by constant tails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from pyrometer.loading.profiling.fetching import MadeBatch
from pyrometer.loading.profiling.leaves import tensor_leaves
from pyrometer.loading.profiling.record import Padding

MIN_LENGTH = 4
_TILES = 64


class PaddedBatch(NamedTuple):
    """A padded tensor of one batch: the true lengths of its rows, and the common length."""

    lengths: list[int]
    padded_to: int
    source: str


def padding_of(batches: Sequence[MadeBatch]) -> list[Padding]:
    """Padding of every tensor in which some is found, in all batches together."""
    padded_batches: dict[str, list[PaddedBatch]] = {}
    for batch in batches:
        for path, tensor in tensor_leaves(batch.batch):
            padded = padded_batch(path, tensor, batch)
            if padded is not None:
                padded_batches.setdefault(path, []).append(padded)
    measured = [padding_share(path, rows) for path, rows in padded_batches.items()]
    return [padding for padding in measured if padding.share > 0]


def padding_share(path: str, batches: Sequence[PaddedBatch]) -> Padding:
    """Shares of padding as it is, and as it would be.

    Sorting is predicted by drawing many batches of the same size from the lengths seen.

    >>> found = padding_share("x", [PaddedBatch([2, 8], 8, "mask"), PaddedBatch([2, 8], 8, "mask")])
    >>> found.share, found.sorted_share
    (0.375, 0.0)
    """
    lengths = np.array([length for batch in batches for length in batch.lengths])
    size = max(len(batch.lengths) for batch in batches)
    total = int(lengths.sum())
    as_is = sum(len(batch.lengths) * batch.padded_to for batch in batches)
    to_longest = sum(len(batch.lengths) * max(batch.lengths) for batch in batches)
    ordered = np.sort(np.tile(lengths, max(1, _TILES * size // len(lengths))))
    groups = np.array_split(ordered, max(1, len(ordered) // size))
    in_order = sum(len(group) * int(group[-1]) for group in groups)
    return Padding(
        path=path,
        source=batches[0].source,
        share=_share(total, as_is),
        longest_share=_share(total, to_longest),
        sorted_share=_share(int(ordered.sum()), in_order),
        num_samples=len(lengths),
        longest=int(lengths.max()),
        padded_to=max(batch.padded_to for batch in batches),
    )


def padded_batch(path: str, tensor: torch.Tensor, batch: MadeBatch) -> PaddedBatch | None:
    """True lengths of the rows of a batch's tensor (row, position, …); `None` where nothing says that it is padded."""
    if tensor.ndim < 2 or tensor.shape[0] < 2 or tensor.shape[1] < MIN_LENGTH:
        return None
    for lengths, source in (
        (_by_samples(path, tensor, batch.samples), "lengths of the samples"),
        (_by_mask(tensor, batch.batch), "mask"),
        (_by_lengths(tensor, batch.batch), "lengths"),
        (_by_tails(tensor), "constant tails"),
    ):
        if lengths is not None:
            return PaddedBatch(lengths, tensor.shape[1], source)
    return None


def _share(total: int, padded: int) -> float:
    return 1 - total / padded if padded else 0.0


def _by_samples(path: str, tensor: torch.Tensor, samples: Sequence[Any]) -> list[int] | None:
    """By the parts at the same path of the samples, where their first dimension varies."""
    rows = [dict(tensor_leaves(sample)).get(path) for sample in samples]
    sizes = [row.shape[0] for row in rows if row is not None and row.ndim >= 1]
    if len(sizes) != tensor.shape[0] or len(set(sizes)) < 2 or max(sizes) > tensor.shape[1]:
        return None
    return sizes


def _by_mask(tensor: torch.Tensor, batch: Any) -> list[int] | None:
    """By a mask of the batch: zeros and ones (row, position), the same on one side of every row."""
    for path, other in tensor_leaves(batch):
        if other.shape != tensor.shape[:2] or "mask" not in path.lower() or not _is_mask(other):
            continue
        real = other.to(torch.bool)
        if bool(real.all()) or not bool(real.any()):
            return [tensor.shape[1]] * tensor.shape[0]
        for candidate in (real, ~real):  # true where there is something, or where there is nothing
            steps = (candidate[:, 1:] != candidate[:, :-1]).sum(1)
            if bool((steps <= 1).all()) and bool(candidate.any(1).all()):
                return [int(length) for length in candidate.sum(1)]
    return None


def _is_mask(tensor: torch.Tensor) -> bool:
    return tensor.dtype == torch.bool or bool(((tensor == 0) | (tensor == 1)).all())


def _by_lengths(tensor: torch.Tensor, batch: Any) -> list[int] | None:
    """By whole numbers (row) at a path with `len` in it."""
    for path, other in tensor_leaves(batch):
        if "len" not in path.lower() or other.shape != tensor.shape[:1] or other.is_floating_point():
            continue
        lengths = [int(length) for length in other]
        if min(lengths) >= 1 and max(lengths) <= tensor.shape[1] and len(set(lengths)) > 1:
            return lengths
    return None


def _by_tails(tensor: torch.Tensor) -> list[int] | None:
    """By rows of token numbers that end in the same value, or rows of vectors that end in zeros; most rows must.

    A row that consists of nothing else is taken for real: it may be a blank sample.
    """
    if tensor.ndim == 2 and not tensor.is_floating_point() and tensor.dtype != torch.bool:
        pad = tensor[:, -1].mode().values
        is_pad = tensor == pad
    elif tensor.ndim == 3 and tensor.is_floating_point():
        is_pad = (tensor == 0).all(2)
    else:
        return None
    tails = is_pad.flip(1).to(torch.int64).cumprod(1).sum(1)
    tails[tails == tensor.shape[1]] = 0
    if int((tails >= 2).sum()) * 2 < tensor.shape[0] or len(set(tails.tolist())) < 2:
        return None
    # Where the value is common inside too (labels of several classes, sparse features), its tails are no padding.
    num_inside = int(is_pad.sum()) - int(tails.sum())
    if num_inside > 0.05 * (tensor.shape[0] * tensor.shape[1] - int(tails.sum())):
        return None
    return [tensor.shape[1] - int(tail) for tail in tails]
