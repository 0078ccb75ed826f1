"""Batches in parts whose gradients are accumulated, as a training of its own."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.errors import InputError
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.losses import batch_loss
from pyrometer.workload.training import Training

Reduction: TypeAlias = Literal["mean", "sum"]


def in_parts(work: Training, num_parts: int, reduction: Reduction = "mean", batch_dim: int = 0) -> Training:
    """The same training step with every batch split into parts; nothing is run.

    Raises:
        InputError: `num_parts` below 1, another reduction, or no training.
    """
    if not isinstance(work, Training):
        raise InputError(
            f"work: got {type(work).__name__}; micro-batches are for training, give pm.Training(…)"
        )
    _require_parts(num_parts)
    if reduction not in get_args(Reduction):
        raise InputError(f"reduction: got {reduction!r}; legal are {', '.join(get_args(Reduction))}")
    weight = _Weight()
    loss = work.parts.loss
    split = copy.copy(work)
    weighted = _WeightedModule(loss, weight) if isinstance(loss, nn.Module) else _Weighted(loss, weight)
    split.parts = work.parts._replace(loss=weighted)
    split.batches = Parts(work.batches, num_parts, reduction, weight, batch_dim)
    split.accumulate = work.accumulate * num_parts
    if isinstance(work.per_step, (int, float)):
        split.per_step = work.per_step / num_parts
    split.name = f"{work.name} in {num_parts} micro-batches"
    return split


def micro_batches(batch: Any, num_parts: int, *, batch_dim: int = 0) -> list[Any]:
    """Split a batch along the samples' dimension into parts as equal as they can be, the last ones smaller.

    Tensors that are as long in that dimension as the first tensor are split, as views; all else is the same in all
    parts. So are masks `[T, T]` where there are as many positions as samples.

    Args:
        batch: nested tuples, lists and dicts with tensors.
        num_parts: how many; fewer are made when there are fewer samples.
        batch_dim: dimension of the samples: 1 for time-first inputs `[T, B, …]`. Tensors of one dimension, such as
            labels, are split along it.

    Raises:
        InputError: no tensor with a leading dimension, or no parts.

    >>> [part.tolist() for part in micro_batches(torch.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    _require_parts(num_parts)
    sizes = part_sizes(num_samples(batch, batch_dim), num_parts)
    leaves, tree = pytree.tree_flatten(batch)
    first = _first(leaves, batch_dim)
    cut = [
        leaf.split(sizes, min(batch_dim, leaf.dim() - 1))
        if _holds_samples(leaf, leaves[first], batch_dim, is_first=at == first)
        else [leaf] * len(sizes)
        for at, leaf in enumerate(leaves)
    ]
    return [pytree.tree_unflatten(list(part), tree) for part in zip(*cut, strict=True)]


def num_samples(batch: Any, batch_dim: int = 0) -> int:
    """The length of the samples' dimension, in a batch's first tensor that has one.

    Raises:
        InputError: there is none.
    """
    leaves = pytree.tree_leaves(batch)
    return int(leaves[_first(leaves, batch_dim)].shape[batch_dim])


def _first(leaves: Sequence[Any], batch_dim: Any) -> int:
    """Where the first tensor with a dimension of samples is."""
    if isinstance(batch_dim, bool) or not isinstance(batch_dim, int) or batch_dim < 0:
        raise InputError(f"batch_dim: got {batch_dim!r}; it must be 0, or 1 for time-first inputs [T, B, …]")
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and leaf.dim() > batch_dim:
            return at
    what = "a leading dimension" if batch_dim == 0 else f"a dimension {batch_dim}"
    raise InputError(f"batch: holds no tensor with {what}, so it cannot be split into micro-batches")


def _holds_samples(leaf: Any, first: torch.Tensor, batch_dim: int, *, is_first: bool) -> bool:
    """Whether a tensor has a row per sample."""
    if is_first:
        return True
    if not isinstance(leaf, torch.Tensor) or leaf.dim() == 0:
        return False
    total = first.shape[batch_dim]
    return leaf.shape[min(batch_dim, leaf.dim() - 1)] == total and not _is_mask(leaf, first, total)


def _is_mask(leaf: torch.Tensor, first: torch.Tensor, total: int) -> bool:
    """Whether a tensor is `[T, T]` beside inputs with as many positions as samples, and so the same for all samples."""
    square = leaf.dim() >= 2 and leaf.shape[-2:] == (total, total)
    both = first.dim() >= 2 and first.shape[:2] == (total, total)
    whole = not (leaf.is_floating_point() or leaf.dtype == torch.bool)  # such as labels of tokens
    alike = leaf.shape == first.shape and leaf.dtype == first.dtype
    return square and both and not whole and not alike


def part_sizes(total: int, num_parts: int) -> list[int]:
    """Sizes of parts that differ by one at most, the larger first.

    >>> part_sizes(10, 4), part_sizes(2, 4)
    ([3, 3, 2, 2], [1, 1])
    """
    parts = max(min(num_parts, total), 1)
    return [total // parts + (index < total % parts) for index in range(parts)]


class _Weight:
    """Share of the present part, times the number of parts; parts are handed out right before they are used."""

    def __init__(self) -> None:
        self.value = 1.0

    def __deepcopy__(self, memo: dict[int, Any]) -> _Weight:
        return self  # a copied model still gets its parts from the same stream


class Parts:
    """The parts of batches, one after another; every iteration starts the batches anew.

    Attributes:
        whole: the batches.
        num_parts: of each.
        batch_dim: dimension of the samples.
    """

    def __init__(
        self, batches: Iterable[Any], num_parts: int, reduction: Reduction, weight: _Weight, batch_dim: int
    ) -> None:
        self.batch_dim = batch_dim
        self.num_parts = num_parts
        self.whole = batches
        self._reduction = reduction
        self._weight = weight

    def over(self, batches: Iterable[Any]) -> Parts:
        """The same parts of other batches, for the same loss."""
        return Parts(batches, self.num_parts, self._reduction, self._weight, self.batch_dim)

    def __iter__(self) -> Iterator[Any]:
        with contextlib.closing(BatchStream(self.whole)) as stream:
            while True:
                batch = stream.next()
                total = num_samples(batch, self.batch_dim)
                parts = micro_batches(batch, self.num_parts, batch_dim=self.batch_dim)
                sizes = part_sizes(total, self.num_parts)
                idle = self.num_parts - len(parts)
                for part, size in zip([*parts, *parts[-1:] * idle], [*sizes, *[0] * idle], strict=True):
                    share = size / total if self._reduction == "mean" else float(size > 0)
                    # The training step divides by the number of parts.
                    self._weight.value = share * self.num_parts
                    yield part


class _Weighted:
    """A loss function, or the loss in the model's output, times the part's weight."""

    def __init__(self, loss: Callable[..., torch.Tensor] | None, weight: _Weight) -> None:
        self._loss = loss
        self._weight = weight

    def __call__(self, model: nn.Module, batch: Any) -> torch.Tensor:
        return batch_loss(self._loss)(model, batch) * self._weight.value


class _WeightedModule(nn.Module):
    """A loss that is a module, and so may have parameters."""

    def __init__(self, loss: nn.Module, weight: _Weight) -> None:
        super().__init__()
        self.loss = loss
        self._weight = weight

    def forward(self, output: Any, target: Any) -> torch.Tensor:
        loss: torch.Tensor = self.loss(output, target)
        return loss * self._weight.value


def _require_parts(num_parts: Any) -> None:
    if isinstance(num_parts, bool) or not isinstance(num_parts, int) or num_parts < 1:
        raise InputError(f"num_parts: got {num_parts!r}; it must be a whole number of at least 1")
