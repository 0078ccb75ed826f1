"""What a step is worth: units per step, and for padded batches the effective units and the share of padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from pyrometer.errors import InputError
from pyrometer.workload.inputs import Arguments

UnitCount: TypeAlias = float | Callable[[Any], float]
MaskSource: TypeAlias = str | int | Callable[[Any], torch.Tensor]


def effective_units(mask_or_lengths: torch.Tensor) -> tuple[float, float]:
    """Count real and padded units from a mask (any dims, non-zero = real) or from lengths (1-D integers above one).

    >>> effective_units(torch.tensor([[1, 1, 0], [1, 0, 0]]))
    (3.0, 6.0)
    >>> effective_units(torch.tensor([4, 2]))
    (6.0, 8.0)
    """
    is_lengths = mask_or_lengths.dim() == 1 and mask_or_lengths.dtype in {torch.int32, torch.int64}
    if is_lengths and bool((mask_or_lengths > 1).any()):
        return float(mask_or_lengths.sum()), float(mask_or_lengths.max()) * mask_or_lengths.numel()
    return float((mask_or_lengths != 0).sum()), float(mask_or_lengths.numel())


class UnitCounter:
    """Counts the units of each step as its arguments are made.

    Args:
        per_step: a number, or a function of the step's inputs; `None` takes the leading dimension of the first tensor.
        mask: where the mask or the lengths are: a keyword, a position, or a function of the inputs.
    """

    def __init__(self, per_step: UnitCount | None, mask: MaskSource | None) -> None:
        self._per_step = per_step
        self._mask = mask
        self._num_steps = 0
        self._units = 0.0
        self._padded_units = 0.0

    def add(self, arguments: Arguments) -> None:
        """Count one step."""
        self._num_steps += 1
        if self._mask is not None:
            effective, padded = effective_units(_find_mask(arguments, self._mask))
            self._units += effective
            self._padded_units += padded
        else:
            self._units += self._count(arguments)

    def _count(self, arguments: Arguments) -> float:
        if callable(self._per_step):
            return float(self._per_step(_as_given(arguments)))
        if self._per_step is not None:
            return float(self._per_step)
        first = next((t for t in arguments.tensors() if t.dim() > 0), None)
        return float(first.shape[0]) if first is not None else 1.0

    @property
    def units_per_step(self) -> float:
        """Mean units per step so far; for masked workloads the effective ones."""
        return self._units / max(self._num_steps, 1)

    @property
    def padding_ratio(self) -> float | None:
        """Share of padding so far; `None` without a mask."""
        if self._mask is None or self._padded_units == 0:
            return None
        return 1 - self._units / self._padded_units


def _as_given(arguments: Arguments) -> Any:
    if arguments.kwargs:
        return arguments.kwargs
    return arguments.args[0] if len(arguments.args) == 1 else arguments.args


def _find_mask(arguments: Arguments, mask: MaskSource) -> torch.Tensor:
    if callable(mask):
        return mask(_as_given(arguments))
    try:
        found = arguments.kwargs[mask] if isinstance(mask, str) else arguments.args[mask]
    except (KeyError, IndexError):
        have = sorted(arguments.kwargs) if isinstance(mask, str) else f"{len(arguments.args)} positional inputs"
        raise InputError(f"mask: no input {mask!r}; there are {have}") from None
    if not isinstance(found, torch.Tensor):
        raise InputError(f"mask: input {mask!r} is {type(found).__name__}; it must be a tensor of 0/1 or of lengths")
    return found
