"""Other values for a call than the caller's own, so that what a check finds does not rest on friendly ones.

A maximum over positive numbers is not changed by zeros, and one over negative numbers is. So the padded model is held
against the unpadded one on further values too: of both signs, at other scales, alike at all positions (so that whatever a
model makes of padding has a chance to be the larger), and all of one sign. The padding stays what it is in use: a sum over
zeros is right whatever the values, and passes.

Whole numbers may be indices, so only values that were there are used again. Masks and lengths stay as they are, as do
floating-point inputs that look like a mask (0, 1 and very negative numbers only) beside one that does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from pyrometer.tuning.shapes.axes import Axes, CallArguments, Sizes, like_the_tensor

MASKED_BELOW = -1e4
"""What is added to scores where nothing may be attended to is at most this."""


class _Kind(NamedTuple):
    """One way to make other values: from their own, their usual magnitude, and normal random numbers of one seed."""

    what: str
    make: Callable[[torch.Tensor, float, torch.Tensor], torch.Tensor]
    seed: int
    alike: bool = False


ALWAYS = (
    _Kind("negated", lambda own, _scale, _noise: -own, 0),
    _Kind("alike at all positions", lambda _own, scale, noise: scale * noise, 1, alike=True),
    _Kind("alike at all positions", lambda _own, scale, noise: -scale * noise, 1, alike=True),
    _Kind("ten times as large", lambda _own, scale, noise: 10 * scale * noise, 2),
)
THOROUGH = (
    _Kind("alike at all positions and large", lambda _own, scale, noise: 10 * scale * noise, 3, alike=True),
    _Kind("alike at all positions and large", lambda _own, scale, noise: -10 * scale * noise, 3, alike=True),
    _Kind("all positive", lambda own, scale, _noise: own.abs() + scale, 4),
    _Kind("all negative", lambda own, scale, _noise: -own.abs() - scale, 5),
    _Kind("a tenth as large", lambda _own, scale, noise: 0.1 * scale * noise, 6),
)


@dataclass(frozen=True)
class Hostile:
    """Other values for the inputs of one call."""

    axes: Axes
    kept: frozenset[str]
    call: CallArguments

    def calls(self, *, thorough: bool) -> Iterator[tuple[str, CallArguments]]:
        """Calls of the same shapes with other values, each with its description.

        Args:
            thorough: more of them, for a model whose result depends on what its padding holds.
        """
        names = self._data()
        for kind in (*ALWAYS, *(THOROUGH if thorough else ())) if names else ():
            values = {name: self._filled(name, kind) for name in names}
            yield kind.what, self.axes.replaced(self.call, values)

    def other_padding(self, padded: CallArguments, sizes: Sizes, sign: int) -> CallArguments:
        """A padded call with large numbers of one sign, or whole numbers that were there, in its padding."""
        true_sizes = self.axes.by_name(sizes)
        changed = {}
        for name in self._data():
            own, value = self.axes.get(name, self.call), self.axes.get(name, padded).detach().clone()
            for dim, axis in self.axes.inputs[name].items():
                size = true_sizes[axis]
                padding = value.narrow(dim, size, value.shape[dim] - size)
                if own.is_floating_point():
                    padding.fill_(sign * 10 * (_scale(own) + 1))
                else:
                    padding.copy_(_drawn_again(own, padding.shape, 0))
            changed[name] = value
        return self.axes.replaced(padded, changed)

    def _filled(self, name: str, kind: _Kind) -> torch.Tensor:
        own = self.axes.get(name, self.call).detach()
        dims = {dim % own.dim() for dim in self.axes.inputs[name]} if kind.alike else set()
        shape = torch.Size([1 if dim in dims else size for dim, size in enumerate(own.shape)])
        if own.is_floating_point():
            wide = own.float() if own.element_size() < 4 else own
            noise = torch.randn(shape, generator=torch.Generator().manual_seed(kind.seed)).to(wide)
            tensor = kind.make(wide, _scale(own), noise)
        else:
            tensor = _drawn_again(own, shape, kind.seed)
        with like_the_tensor(own):
            return torch.empty_like(own).copy_(tensor.expand(own.shape))

    def _data(self) -> list[str]:
        """The inputs that are neither masks nor lengths; of several that look like masks the largest is taken for data."""
        given = {name: self.axes.get(name, self.call) for name in self.axes.inputs if name not in self.kept}
        numbers = {name: value for name, value in given.items() if _holds_numbers(value)}
        plain = [name for name, value in numbers.items() if not _like_a_mask(value)]
        return plain or sorted(numbers, key=lambda name: -numbers[name].numel())[:1]


def _drawn_again(own: torch.Tensor, shape: torch.Size, seed: int) -> torch.Tensor:
    """Values that were there, at other places: they may be indices."""
    places = torch.randint(own.numel(), (shape.numel(),), generator=torch.Generator().manual_seed(seed))
    return own.detach().flatten()[places.to(own.device)].reshape(shape)


def _scale(own: torch.Tensor) -> float:
    """The usual magnitude of values; 1 where all are zero."""
    finite = own.detach()[own.detach().isfinite()].double()
    return float(finite.square().mean().sqrt()) if finite.numel() and bool(finite.any()) else 1.0


def _holds_numbers(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.numel() > 0
        and value.layout == torch.strided
        and not value.is_complex()
        and value.dtype != torch.bool
    )


def _like_a_mask(value: torch.Tensor) -> bool:
    plain = (value == 0) | (value == 1) | (value <= MASKED_BELOW)
    return value.is_floating_point() and bool(plain.all())
