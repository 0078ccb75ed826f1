"""What activation functions let through: saturated values, and units that are never active."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from pyrometer.numerics.nonfinite import Made
from pyrometer.numerics.operators import Seen
from pyrometer.numerics.report import Activation
from pyrometer.numerics.tensors import has_values

ENDS = {"sigmoid": (0.01, 0.99), "tanh": (-0.98, 0.98)}
"""Beyond these a value is within 1 % of an end of the range."""

MOST_PLACES = 200


@dataclass
class _Place:
    function: str
    made: Made
    num_values: int
    counted: torch.Tensor  # values that are saturated, or 0
    alive: torch.Tensor | None  # units that were above 0 at least once


class ActivationWatch:
    """Counts values per activation function and place; nothing is read from a device before the end."""

    def __init__(self) -> None:
        self._places: dict[object, _Place] = {}

    def saw(self, seen: Seen) -> None:
        """An operator ran."""
        function = seen.op.rstrip("_")
        if seen.phase != "forward" or (function != "relu" and function not in ENDS):
            return
        output = seen.results[0]
        if has_values(output) and output.dim():
            self._add(function, seen, output.detach())

    def found(self) -> list[Activation]:
        """Every place, in the order in which they first ran."""
        return [_told(place) for place in self._places.values()]

    def _add(self, function: str, seen: Seen, output: torch.Tensor) -> None:
        alive = _alive(output) if function == "relu" else None
        place = (seen.point.code, seen.point.instruction) if seen.point else None
        key = function, seen.module, place, None if alive is None else alive.shape
        known = self._places.get(key)
        counted = _counted(function, output)
        if known is None:
            if len(self._places) < MOST_PLACES:
                self._places[key] = _Place(function, seen.made, output.numel(), counted, alive)
            return
        known.num_values += output.numel()
        known.counted = known.counted + counted
        if alive is not None and known.alive is not None:
            known.alive = known.alive | alive


def _counted(function: str, output: torch.Tensor) -> torch.Tensor:
    if function == "relu":
        return (output == 0).sum()
    low, high = ENDS[function]
    return ((output < low) | (output > high)).sum()


def _alive(output: torch.Tensor) -> torch.Tensor:
    """Which units are above 0 anywhere: channels of images, else columns."""
    unit = 1 if output.dim() >= 4 else output.dim() - 1
    others = [dim for dim in range(output.dim()) if dim != unit]
    return output.amax(others) > 0 if others else output > 0


def _told(place: _Place) -> Activation:
    share: Any = float(place.counted) / place.num_values
    is_relu = place.function == "relu"
    return Activation(
        function=place.function,
        where=place.made.place,
        saturated=None if is_relu else share,
        zeros=share if is_relu else None,
        dead=None if place.alive is None else 1 - float(place.alive.float().mean()),
    )
