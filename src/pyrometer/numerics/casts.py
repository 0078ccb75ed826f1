"""Whole numbers that become floating-point numbers: which of them survive it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from pyrometer.numerics.nonfinite import Made
from pyrometer.numerics.operators import Seen
from pyrometer.numerics.report import IntegerCast
from pyrometer.numerics.tensors import has_values, memory_key

EXACT = {torch.float16: 2**11, torch.bfloat16: 2**8, torch.float32: 2**24, torch.float64: 2**53}
"""Up to this magnitude every whole number has a value of its own; one more bit than the mantissa holds."""

CASTS = frozenset({"_to_copy", "to", "type_as"})
MOST_PLACES = 50


@dataclass
class _Cast:
    name: str | None
    source: torch.dtype
    target: torch.dtype
    made: Made
    num_values: int = 0
    num_changed: int = 0
    largest: int = 0


class CastWatch:
    """Notes casts from whole to floating-point numbers, by place.

    Args:
        inputs: names of the inputs of the step by their memory; kept up to date by the owner.
    """

    def __init__(self, inputs: Mapping[tuple[str, int], str]) -> None:
        self._inputs = inputs
        self._casts: dict[object, _Cast] = {}

    def saw(self, seen: Seen) -> None:
        """An operator ran."""
        if seen.op not in CASTS or not seen.leaves or not seen.results:
            return
        source, target = seen.leaves[0], seen.results[0]
        if (
            not (has_values(source) and has_values(target))
            or not _is_whole(source)
            or target.dtype not in EXACT
        ):
            return
        low, high = (int(end) for end in torch.aminmax(source))
        largest = max(abs(low), abs(high))
        changed = int((target.double() != source.double()).sum()) if largest > EXACT[target.dtype] else 0
        name = self._inputs.get(memory_key(source))
        if changed or name is not None:
            cast = self._place(seen, name, source.dtype, target.dtype)
            cast.num_values += source.numel()
            cast.num_changed += changed
            cast.largest = max(cast.largest, largest)

    def found(self) -> list[IntegerCast]:
        """Every cast, most values changed first."""
        records = [
            IntegerCast(
                name=cast.name,
                from_dtype=str(cast.source).removeprefix("torch."),
                to_dtype=str(cast.target).removeprefix("torch."),
                num_values=cast.num_values,
                num_changed=cast.num_changed,
                largest=cast.largest,
                where=cast.made.place,
            )
            for cast in self._casts.values()
        ]
        return sorted(records, key=lambda cast: -cast.num_changed)

    def _place(self, seen: Seen, name: str | None, source: torch.dtype, target: torch.dtype) -> _Cast:
        key = name, source, target, seen.module, seen.site
        if key not in self._casts and len(self._casts) >= MOST_PLACES:
            return _Cast(name, source, target, seen.made)  # not kept
        return self._casts.setdefault(key, _Cast(name, source, target, seen.made))


def _is_whole(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)
