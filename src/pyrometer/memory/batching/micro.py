r"""The same optimizer step from smaller batches: activations of one part at a time.

With a loss that is a mean over samples, \\(L = \frac{1}{n} \\sum_i l_i\\), and parts of \\(n_1 + … + n_m = n\\) samples, the gradient is the
sum of the parts' gradients weighted by \\(n_j / n\\): to rounding, also where the last part is smaller. It is another where samples
see each other (batch norm), where the loss is no mean over samples (a sum, or a mean over unpadded tokens), and where random
numbers are drawn (dropout draws other ones).
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Literal, TypeAlias, get_args

import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.errors import InputError
from pyrometer.memory.checkpointing.verify import results_of
from pyrometer.memory.recording.steps import record_steps
from pyrometer.quantity import Bytes, format_bytes, significant
from pyrometer.record import Record, doc
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.losses import batch_loss
from pyrometer.workload.training import Training

Reduction: TypeAlias = Literal["mean", "sum"]

ROUNDING = 256
"""Relative differences up to so many units in the last place count as rounding: sums are taken in another order."""


class MicroReport(Record, frozen=True, kw_only=True):
    """What micro-batches bring, and whether they train the same."""

    num_parts: int
    sizes: Annotated[list[int], doc("samples of the parts of the first batch")]
    equal: Annotated[bool, doc("gradients agree to rounding")]
    max_error: Annotated[float, doc("norm of the difference of all gradients over their norm")]
    why: Annotated[list[str], doc("why gradients cannot be equal; empty when they are")] = []
    peak_before_bytes: Annotated[Bytes, doc("measured, of steps as written")]
    peak_after_bytes: Annotated[Bytes, doc("measured, with micro-batches")]
    sentence: str


def micro_batches(batch: Any, num_parts: int) -> list[Any]:
    """Split a batch along the leading dimension into parts as equal as they can be, the last ones smaller.

    Tensors whose leading dimension is that of the first tensor are split, as views; all else is
    the same in all parts.

    Args:
        batch: nested tuples, lists and dicts with tensors.
        num_parts: how many; fewer are made when there are fewer samples.

    Raises:
        InputError: no tensor with a leading dimension, or no parts.

    >>> [part.tolist() for part in micro_batches(torch.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    _require_parts(num_parts)
    total = num_samples(batch)
    sizes = part_sizes(total, num_parts)
    starts = [sum(sizes[:index]) for index in range(len(sizes))]
    return [_part(batch, total, start, size) for start, size in zip(starts, sizes, strict=True)]


def num_samples(batch: Any) -> int:
    """The leading dimension of a batch's first tensor that has one.

    Raises:
        InputError: there is none.
    """
    for leaf in pytree.tree_leaves(batch):
        if isinstance(leaf, torch.Tensor) and leaf.dim() > 0:
            return len(leaf)
    raise InputError(
        "batch: holds no tensor with a leading dimension, so it cannot be split into micro-batches"
    )


def part_sizes(total: int, num_parts: int) -> list[int]:
    """Sizes of parts that differ by one at most, the larger first.

    >>> part_sizes(10, 4), part_sizes(2, 4)
    ([3, 3, 2, 2], [1, 1])
    """
    parts = max(min(num_parts, total), 1)
    return [total // parts + (index < total % parts) for index in range(parts)]


def micro_batched(work: Training, num_parts: int, *, reduction: Reduction = "mean") -> Training:
    """The same training step with every batch split into parts whose gradients are accumulated.

    The optimizer steps as often as before. A batch with fewer samples than parts repeats its last sample with weight 0.

    Args:
        work: the training step; left as it is.
        num_parts: parts per batch.
        reduction: of the loss over samples. The loss of each part is weighted by its share of the samples for a mean, and
            not at all for a sum.

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
    split.batches = _Parts(work.batches, num_parts, reduction, weight)
    split.accumulate = work.accumulate * num_parts
    if isinstance(work.per_step, (int, float)):
        split.per_step = work.per_step / num_parts
    split.name = f"{work.name} in {num_parts} micro-batches"
    return split


def check_micro_batches(work: Training, num_parts: int, *, seed: int = 0) -> MicroReport:
    """Run steps with and without micro-batches: are the gradients equal, and what is the peak?

    Raises:
        InputError: the batches cannot be split.
        UserProgramError: a step raised.
    """
    split = micro_batched(work, num_parts)
    error = _distance(work, split, seed)
    equal = error <= _rounding(work)
    before, after = record_steps(work).peak_bytes, record_steps(split).peak_bytes
    with contextlib.closing(BatchStream(work.batches)) as stream:
        sizes = part_sizes(num_samples(stream.next()), num_parts)
    return MicroReport(
        num_parts=num_parts,
        sizes=sizes,
        equal=equal,
        max_error=error,
        why=[] if equal else _why(work, num_parts, seed, error),
        peak_before_bytes=before,
        peak_after_bytes=after,
        sentence=_sentence(num_parts, before, after, error, equal=equal),
    )


class _Weight:
    """Share of the present part, times the number of parts; parts are handed out right before they are used."""

    def __init__(self) -> None:
        self.value = 1.0

    def __deepcopy__(self, memo: dict[int, Any]) -> _Weight:
        return self  # a copied model still gets its parts from the same stream


class _Parts:
    """The parts of batches, one after another; every iteration starts the batches anew."""

    def __init__(self, batches: Iterable[Any], num_parts: int, reduction: Reduction, weight: _Weight) -> None:
        self._batches = batches
        self._reduction = reduction
        self._num_parts = num_parts
        self._weight = weight

    def __iter__(self) -> Iterator[Any]:
        with contextlib.closing(BatchStream(self._batches)) as stream:
            while True:
                batch = stream.next()
                total = num_samples(batch)
                parts = micro_batches(batch, self._num_parts)
                sizes = part_sizes(total, self._num_parts)
                idle = self._num_parts - len(parts)
                for part, size in zip([*parts, *parts[-1:] * idle], [*sizes, *[0] * idle], strict=True):
                    share = size / total if self._reduction == "mean" else float(size > 0)
                    # The training step divides by the number of parts.
                    self._weight.value = share * self._num_parts
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


def _part(batch: Any, total: int, start: int, size: int) -> Any:
    def cut(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dim() > 0 and len(leaf) == total:
            return leaf[start : start + size]
        return leaf

    return pytree.tree_map(cut, batch)


def _flat(results: dict[str, torch.Tensor]) -> torch.Tensor:
    gradients = [
        value.flatten().to(torch.float64) for name, value in sorted(results.items()) if name.endswith(".grad")
    ]
    return torch.cat(gradients) if gradients else torch.zeros(1, dtype=torch.float64)


def _distance(work: Training, split: Training, seed: int) -> float:
    """Norm of the difference of all gradients of the first step, over their norm."""
    whole, parts = _flat(results_of(work, seed)[0]), _flat(results_of(split, seed)[0])
    norm = float(whole.norm())
    return float((whole - parts).norm()) / norm if norm else float(parts.norm())


def _rounding(work: Training) -> float:
    kinds = {tensor.dtype for tensor in work.parts.trained() if tensor.is_floating_point()}
    return ROUNDING * max((torch.finfo(kind).eps for kind in kinds), default=0.0)


def _why(work: Training, num_parts: int, seed: int, error: float) -> list[str]:
    """What makes gradients differ, as far as it shows in the modules, or in trying."""
    figure = f"gradients differ by {significant(100 * error, 2)} % of their norm"
    found = [part for module in work.parts.modules for part in module.modules()]
    norms = sorted({type(part).__name__ for part in found if isinstance(part, _SEES_BATCH)})
    if norms:
        return [f"{figure}: {', '.join(norms)} normalises over the batch, so parts are normalised otherwise"]
    if _distance(work, micro_batched(work, num_parts, reduction="sum"), seed) <= _rounding(work):
        return [f"{figure}: the loss is a sum over samples, not a mean; give reduction='sum'"]
    dropouts = sorted({type(part).__name__ for part in found if isinstance(part, _DRAWS) and part.p > 0})
    if dropouts:
        drawn = f"{', '.join(dropouts)} draws other random numbers for parts"
        return [f"{figure}: {drawn}, which trains as well"]
    advice = "a mean over unpadded tokens, for example, must be weighted by tokens"
    return [f"{figure}: the loss is no mean over samples, or samples see each other; {advice}"]


def _require_parts(num_parts: Any) -> None:
    if isinstance(num_parts, bool) or not isinstance(num_parts, int) or num_parts < 1:
        raise InputError(f"num_parts: got {num_parts!r}; it must be a whole number of at least 1")


_SEES_BATCH = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
_DRAWS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)


def _sentence(num_parts: int, before: Bytes, after: Bytes, error: float, *, equal: bool) -> str:
    peaks = f"{num_parts} micro-batches: peak {format_bytes(before)} → {format_bytes(after)}"
    if equal:
        return f"{peaks}, gradients equal to rounding (difference {error:.1e} of their norm)"
    return f"{peaks}, gradients DIFFER by {significant(100 * error, 2)} % of their norm"
