r"""The same optimizer step from smaller batches: activations of one part at a time.

With a loss that is a mean over samples, \\(L = \frac{1}{n} \\sum_i l_i\\), and parts of \\(n_1 + … + n_m = n\\) samples, the gradient is the
sum of the parts' gradients weighted by \\(n_j / n\\): to rounding, also where the last part is smaller. It is another where samples
see each other (batch norm), where the loss is no mean over samples (a sum, or a mean over unpadded tokens), and where random
numbers are drawn (dropout draws other ones).
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator

import torch
from torch import nn

from pyrometer.errors import InputError, UserProgramError
from pyrometer.quantity import significant
from pyrometer.tuning.dropless import Dropless
from pyrometer.workload.batches import BatchStream
from pyrometer.workload.changes.micro_batches import Reduction, in_parts
from pyrometer.workload.changes.results import results_of
from pyrometer.workload.training import Training

ROUNDING = 256
"""Relative differences up to so many units in the last place count as rounding: sums are taken in another order."""


def micro_batched(
    work: Training,
    num_parts: int,
    *,
    reduction: Reduction = "mean",
    batch_dim: int = 0,
    check: bool = True,
) -> Training:
    """The same training step with every batch split into parts whose gradients are accumulated.

    The optimizer steps as often as before. A batch with fewer samples than parts repeats its last sample with weight 0.

    Args:
        work: the training step; left as it is.
        num_parts: parts per batch.
        reduction: of the loss over samples. The loss of each part is weighted by its share of the samples for a mean, and
            not at all for a sum.
        batch_dim: dimension of the samples: 1 for time-first inputs `[T, B, …]`.
        check: run steps of one batch with and without parts first, without dropout, and refuse other gradients. A program
            that draws random numbers by itself is not refused, nor one whose batches are an iterator, which that would use
            up. `False` takes gradients as they come.

    Raises:
        InputError: `num_parts` below 1, another reduction, no training, or gradients that are not those of the whole
            batch.
        UserProgramError: a step of the whole batch raised.
    """
    split = in_parts(work, num_parts, reduction, batch_dim)
    if check and num_parts > 1 and not isinstance(work.batches, Iterator):
        _require_same(work, num_parts, reduction, batch_dim)
    return split


def _gradients(work: Training, seed: int = 0) -> torch.Tensor:
    """All gradients of the first step."""
    results = sorted(results_of(work, seed)[0].items())
    gradients = [value.flatten().to(torch.float64) for name, value in results if name.endswith(".grad")]
    return torch.cat(gradients) if gradients else torch.zeros(1, dtype=torch.float64)


def _apart(whole: torch.Tensor, parts: torch.Tensor) -> float:
    """Norm of the difference, over the norm."""
    if whole.shape != parts.shape:
        return float("inf")
    norm = float(whole.norm())
    return float((whole - parts).norm()) / norm if norm else float(parts.norm())


def _rounding(work: Training) -> float:
    kinds = {tensor.dtype for tensor in work.parts.trained() if tensor.is_floating_point()}
    return ROUNDING * max((torch.finfo(kind).eps for kind in kinds), default=0.0)


def _require_same(work: Training, num_parts: int, reduction: Reduction, batch_dim: int) -> None:
    """Refuse parts that train otherwise than the whole batch.

    Raises:
        InputError: it says by how much, why, and what to do.
    """
    training = copy.copy(work)
    with contextlib.closing(BatchStream(work.batches)) as stream:
        training.batches = [stream.next()]  # the same one, though a loader shuffles
    parts = in_parts(training, num_parts, reduction, batch_dim)
    with Dropless():
        baseline = _gradients(training)
        try:
            error = _apart(baseline, _gradients(parts))
        except UserProgramError as failure:
            raise InputError(
                f"micro_batched: the step fails with {num_parts} parts: {failure}; say with batch_dim= which dimension the "
                "samples are; where the batch is as long as the sequence, give a batch of another size"
            ) from failure
        if error <= _rounding(work) or _apart(baseline, _gradients(training, 1)) > _rounding(work):
            return  # equal, or different by random numbers of the program itself
        why = _why(training, num_parts, batch_dim, error)
    way_out = "check=False takes the gradients as they are"
    if reduction == "sum":
        figure = f"gradients differ by {significant(100 * error, 2)} % of their norm"
        raise InputError(f"micro_batched: {figure}: the loss is no sum over samples; {way_out}")
    raise InputError(f"micro_batched: {why}; {way_out}")


def _why(work: Training, num_parts: int, batch_dim: int, error: float) -> str:
    """What makes gradients differ, as far as it shows in the modules, or in trying."""
    figure = f"gradients differ by {significant(100 * error, 2)} % of their norm"
    parts = [part for module in work.parts.modules for part in module.modules()]
    norms = sorted({type(part).__name__ for part in parts if isinstance(part, SEES_BATCH)})
    if norms:
        return f"{figure}: {', '.join(norms)} normalises over the batch, so parts are normalised otherwise"
    weighted = [
        type(part).__name__ for part in parts if isinstance(part, WEIGHTED) and part.weight is not None
    ]
    if weighted:
        mean = f"{weighted[0]} with class weights is a mean over weights, of each part for itself"
        return f"{figure}: {mean}; compute it with reduction='sum' and divide by the batch size"
    summed = in_parts(work, num_parts, "sum", batch_dim)
    if _apart(_gradients(work), _gradients(summed)) <= _rounding(work):
        return f"{figure}: the loss is a sum over samples, not a mean; give reduction='sum'"
    recurrent = sorted({type(part).__name__ for part in parts if isinstance(part, nn.RNNBase)})
    if batch_dim == 0 and any(isinstance(p, nn.RNNBase) and not p.batch_first for p in parts):
        return (
            f"{figure}: {', '.join(recurrent)} reads time first [T, B, …], so time is cut; give batch_dim=1"
        )
    dropouts = sorted({type(part).__name__ for part in parts if isinstance(part, _DRAWS) and part.p > 0})
    if dropouts:
        drawn = f"{', '.join(dropouts)} draws other random numbers for parts"
        return f"{figure}: {drawn}, which trains as well"
    advice = "a mean over unpadded tokens, for example, must be weighted by tokens"
    return f"{figure}: the loss is no mean over samples, or samples see each other; {advice}"


SEES_BATCH = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
"""Modules whose result for a sample depends on the other samples of the batch."""

WEIGHTED = (nn.CrossEntropyLoss, nn.NLLLoss)
"""Losses that are a mean over weights, where they have class weights."""

_DRAWS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout)
