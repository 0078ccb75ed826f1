"""Sizes that vary: which bucket a request belongs to, how it is padded to it, and how its part of the outputs is cut back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.tuning.shapes.axes import Axes, Dims, Sizes, declare_axes, parameters_of
from pyrometer.tuning.shapes.checking import Reference
from pyrometer.tuning.shapes.fitting import Fitting
from pyrometer.tuning.shapes.masks import DETECT, masking_for
from pyrometer.workload.inputs import Arguments


class Shaping:
    """The buckets of one model.

    Args:
        model: takes the padded calls; its mask is found by name.
        dims: as of `pm.ShapeBuckets`, with edges in place of names.

    Raises:
        InputError: a dimension without edges, or an input that the model has not.
    """

    def __init__(self, model: nn.Module, dims: Dims) -> None:
        axes = declare_axes(model, dims)
        missing = [name for name in axes.names if name not in axes.edges]
        if missing:
            raise InputError(
                f"buckets: {missing[0]} has no sizes; give those to pad to, such as {missing[0]}=16,32,64"
            )
        masking = masking_for(DETECT, axes, parameters_of(model) or ())
        self.axes: Axes = axes
        self.fitting = Fitting(model, axes, masking, Reference(model))

    @property
    def varying(self) -> dict[str, set[int]]:
        """Dimensions that vary, by input."""
        return {name: set(dims) for name, dims in self.axes.inputs.items()}

    def edges(self) -> list[Sizes]:
        """Every bucket, the largest first, so that memory is taken once."""
        found: list[Sizes] = [()]
        for name in self.axes.names:
            found = [(*known, edge) for known in found for edge in reversed(self.axes.edges[name])]
        return found

    def sizes_of(self, names: Sequence[str], shapes: Sequence[Sequence[int]]) -> Sizes:
        """The varying sizes of a request.

        Raises:
            InputError: inputs disagree on one, or none tells it.
        """
        return self.axes.sizes_of(dict(zip(names, shapes, strict=True)), "inputs")

    def sizes_within(self, names: Sequence[str], shapes: Sequence[Sequence[int]]) -> Sizes:
        """The varying sizes of a request, at most those of the largest bucket, which also stand for what is not known."""
        largest = tuple(self.axes.edges[name][-1] for name in self.axes.names)
        return tuple(map(min, self.sizes_of(names, shapes), largest)) if shapes else largest

    def shapes_of(self, names: Sequence[str], sizes: Sizes, rows: int) -> tuple[tuple[int, ...], ...]:
        """Shapes of inputs that have these sizes; what does not vary is left at 1."""
        given = dict(zip(self.axes.names, sizes, strict=True))
        found = []
        for name in names:
            dims = self.axes.inputs.get(name, {})
            rank = max(dims, default=0) + 1
            found.append((rows, *(given[dims[dim]] if dim in dims else 1 for dim in range(1, rank))))
        return tuple(found)

    def bucket(self, sizes: Sizes) -> Sizes:
        """The smallest bucket that holds these sizes.

        Raises:
            InputError: none does.
        """
        chosen = []
        for name, size in zip(self.axes.names, sizes, strict=True):
            edge = next((edge for edge in self.axes.edges[name] if edge >= size), None)
            if edge is None:
                raise InputError(f"{name}: got {size}; legal is up to {self.axes.edges[name][-1]}")
            chosen.append(edge)
        return tuple(chosen)

    def padded(self, call: Arguments, sizes: Sizes, bucket: Sizes) -> Arguments:
        """A request's call at the sizes of its bucket, with its mask."""
        args, kwargs = self.fitting.padded((call.args, call.kwargs), sizes, bucket)
        return Arguments(tuple(args), dict(kwargs))

    def cut(self, leaves: list[torch.Tensor], places: Sequence[int], sizes: Sizes) -> list[torch.Tensor]:
        """A request's rows of the outputs without what belongs to padding.

        Args:
            leaves: of the outputs.
            places: of each among all leaves of what the model returns.
            sizes: of the request.
        """
        at = {place: number for number, place in enumerate(places)}
        for leaf, dim, size in self.fitting.cuts(sizes):
            number = at.get(leaf)
            if number is not None and leaves[number].shape[dim] > size:
                leaves[number] = leaves[number].narrow(dim, 0, size)
        return leaves

    def resized(self, call: Arguments, sizes: Sizes) -> Arguments:
        """An example call at other sizes."""
        args, kwargs = self.fitting.resized((call.args, call.kwargs), sizes)
        return Arguments(tuple(args), dict(kwargs))


def parse_buckets(texts: Sequence[str]) -> dict[str, dict[int, list[int]]]:
    """Read `NAME.DIM=16,32,64`.

    Raises:
        InputError: another form.

    >>> parse_buckets(["ids.1=16,32", "mask.1=16,32"])
    {'ids': {1: [16, 32]}, 'mask': {1: [16, 32]}}
    """
    found: dict[str, dict[int, list[int]]] = {}
    for text in texts:
        place, equals, sizes = text.partition("=")
        name, dot, dim = place.rpartition(".")
        numbers = [size.strip() for size in sizes.split(",")]
        if not (equals and dot and name and dim.isdigit() and all(number.isdigit() for number in numbers)):
            raise InputError(
                f"--buckets {text}: got no input, dimension and sizes; legal is NAME.DIM=SIZE,…, such as ids.1=16,32,64"
            )
        found.setdefault(name, {})[int(dim)] = [int(number) for number in numbers]
    return found


def padding_share(real: float, padded: float) -> float:
    """How much of what was computed is padding.

    >>> padding_share(3, 4)
    0.25
    """
    return 1.0 - real / padded if padded else 0.0


def volume(sizes: Sizes) -> int:
    """Elements of one row, as far as sizes vary."""
    return math.prod(sizes)


def told(bucket: Any) -> str:
    """A bucket as it stands in figures: `64`, `64x128`, or nothing where all shapes are alike.

    >>> told((64, 128)), told(())
    ('64x128', '')
    """
    return "x".join(str(size) for size in bucket)
