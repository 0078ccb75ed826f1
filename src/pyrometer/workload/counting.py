"""What a step is worth: units per step, and for padded batches the effective units and the share of padding."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from pyrometer.errors import InputError
from pyrometer.workload.failure import user_code
from pyrometer.workload.inputs import Arguments, leading_dimension

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
    """Counts the units of each step.

    Counting may run the user's function or wait for a device, so it must stay out of timed code: a step only
    `note`s what it consumed; `count` does the work between steps.

    Args:
        per_step: a number, or a function of the step's inputs; `None` takes the leading dimension of the first tensor.
        mask: where the mask or the lengths are: a keyword, a position, or a function of the inputs.

    >>> counter = UnitCounter(per_step=None, mask=None)
    >>> counter.note(Arguments((torch.zeros(8, 3),), {}))
    >>> counter.units_per_step
    8.0
    """

    def __init__(self, per_step: UnitCount | None, mask: MaskSource | None) -> None:
        self._per_step = per_step
        self._mask = mask
        self._noted: list[Arguments] = []
        self._num_steps = 0
        self._units = 0.0
        self._padded_units = 0.0

    def note(self, arguments: Arguments) -> None:
        """Remember what a step consumed."""
        self._noted.append(arguments)

    def count(self) -> None:
        """Count what was noted, and let go of it.

        Raises:
            InputError: there is no mask where it was said to be, or `per_step` gives no count.
            UserProgramError: the user's function failed.
        """
        noted, self._noted = self._noted, []
        for arguments in noted:
            self._num_steps += 1
            if self._mask is None:
                self._units += self._count(arguments)
                continue
            effective, padded = effective_units(_find_mask(arguments, self._mask))
            self._units += effective
            self._padded_units += padded

    def _count(self, arguments: Arguments) -> float:
        if callable(self._per_step):
            with user_code("per_step"):
                return legal_count(float(self._per_step(arguments.as_given())))
        if self._per_step is not None:
            return legal_count(float(self._per_step)) * arguments.batch_scale
        batch = leading_dimension(arguments)
        return 1.0 if batch is None else float(batch)

    @property
    def units_per_step(self) -> float:
        """Mean units per step so far; for masked workloads the effective ones."""
        self.count()
        return self._units / max(self._num_steps, 1)

    @property
    def padding_ratio(self) -> float | None:
        """Share of padding so far; `None` without a mask."""
        self.count()
        if self._mask is None or self._padded_units == 0:
            return None
        return 1 - self._units / self._padded_units


def legal_count(units: float) -> float:
    """Units per step, as given.

    Raises:
        InputError: not finite, or negative.
    """
    if not (math.isfinite(units) and units >= 0):
        raise InputError(f"per_step: got {units}; it must be a finite number of units, 0 or more")
    return units


def _find_mask(arguments: Arguments, mask: MaskSource) -> torch.Tensor:
    if callable(mask):
        with user_code("mask"):
            tensor: Any = mask(arguments.as_given())
    else:
        tensor = _entry(arguments, mask)
    if not isinstance(tensor, torch.Tensor):
        raise InputError(
            f"mask: {_shown(mask)} is {type(tensor).__name__}; it must be a tensor of 0/1 or of lengths"
        )
    return tensor


def _entry(arguments: Arguments, mask: str | int) -> Any:
    try:
        return arguments.kwargs[mask] if isinstance(mask, str) else arguments.args[mask]
    except (KeyError, IndexError):
        have = ", ".join(sorted(arguments.kwargs)) or "none"
        raise InputError(
            f"mask: no input {mask!r}; there are {len(arguments.args)} positional inputs, and by keyword: {have}"
        ) from None


def _shown(mask: MaskSource) -> str:
    return "what the function returned" if callable(mask) else f"input {mask!r}"
