"""Telling a model what is padding, where it can be told."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch

from pyrometer.errors import InputError
from pyrometer.tuning.shapes.axes import Axes, CallArguments, Sizes, fit

DETECT = "detect"
"""In place of a mask: look for one among the model's parameters."""

Kind: TypeAlias = Literal["keep", "ignore", "lengths"]

NAMES: dict[Kind, tuple[str, ...]] = {
    "keep": ("attention_mask", "mask", "input_mask", "valid_mask"),
    "ignore": ("key_padding_mask", "src_key_padding_mask", "padding_mask", "pad_mask"),
    "lengths": ("lengths", "seq_lens", "seq_lengths", "input_lengths", "x_lens"),
}
"""Names of parameters by which a mask is recognised."""


@dataclass(frozen=True)
class Mask:
    """How a model is told what is padding.

    Attributes:
        name: of the parameter.
        kind: `keep` is true at what is real, `ignore` true at padding, `lengths` holds the true size of each row.
        axis: the size that it masks; needed where several sizes vary and it is not clear which.
        dtype: of the mask that is made: by default bool, and int64 for lengths and for `attention_mask`.
    """

    name: str
    kind: Kind = "keep"
    axis: str | None = None
    dtype: torch.dtype | None = None

    @property
    def made_dtype(self) -> torch.dtype:
        """Of a mask that is made; models from transformers calculate with theirs, so that bool will not do there."""
        whole = self.kind == "lengths" or self.name == "attention_mask"
        return self.dtype or (torch.int64 if whole else torch.bool)

    @property
    def pad_value(self) -> float:
        """What a mask that the caller gives is padded with."""
        return 0.0 if self.kind == "keep" else 1.0


def find_mask(parameters: Collection[str]) -> Mask | None:
    """The mask that a model takes, going by the names of its parameters.

    >>> find_mask(["x", "src_key_padding_mask"]).kind
    'ignore'
    """
    known = ((name, kind) for kind, names in NAMES.items() for name in names)
    return next((Mask(name, kind) for name, kind in known if name in parameters), None)


@dataclass(frozen=True)
class Masking:
    """The mask of one model: made where the caller gives none, padded where the caller gives one.

    Attributes:
        mask: how the model is told.
        source: the input and dimension whose size it masks.
        rows: the dimension of that input that holds the rows of a batch; `None` without one.
    """

    mask: Mask
    axes: Axes
    source: str
    dim: int
    rows: int | None

    @staticmethod
    def of(mask: Mask, axes: Axes) -> Masking:
        """Find the size that is masked.

        Raises:
            InputError: several sizes may be meant.
        """
        candidates = [
            (name, dim, axis)
            for name, dims in axes.inputs.items()
            for dim, axis in dims.items()
            if name != mask.name and (axis == mask.axis if mask.axis else dim != 0 or len(axes.names) == 1)
        ]
        if len({axis for _, _, axis in candidates}) != 1:
            raise InputError(
                f"mask {mask.name}: which size does it mask? it may be {' or '.join(axes.names)}; pass "
                f'mask=Mask("{mask.name}", axis="{axes.names[-1]}"), or mask=None for a model that needs none'
            )
        source, dim, _ = candidates[0]
        return Masking(mask, axes, source, dim, rows={0: 1}.get(dim, 0))

    @property
    def axis(self) -> str:
        """The size that is masked."""
        return self.axes.inputs[self.source][self.dim]

    def apply(self, given: CallArguments, padded: CallArguments, sizes: Sizes, edges: Sizes) -> CallArguments:
        """The padded call with its mask."""
        own = self.axes.get(self.mask.name, given)
        if own is None:
            tensor = self._made(self.axes.get(self.source, padded), sizes, edges)
            if self.axes.positions.get(self.mask.name, len(padded[0])) < len(padded[0]):
                return self.axes.replaced(padded, {self.mask.name: tensor})  # None was given by position
            return padded[0], {**padded[1], self.mask.name: tensor}
        if not isinstance(own, torch.Tensor):
            return padded
        return self.axes.replaced(padded, {self.mask.name: self._fitted(own, sizes, edges)})

    def _fitted(self, own: torch.Tensor, sizes: Sizes, edges: Sizes) -> torch.Tensor:
        """The caller's mask, padded with what it ignores; rows that are padding themselves see everything."""
        wanted = self.axes.by_name(edges)
        if self.mask.kind == "lengths":
            return own.clamp(max=wanted[self.axis])
        dims = self.axes.inputs.get(self.mask.name) or self.dims(own, sizes)
        padding = self.axes.pad_values.get(self.mask.name, self.mask.pad_value)
        fitted = fit(own, {dim: wanted[axis] for dim, axis in dims.items()}, padding)
        if 0 in dims and own.dim() > 1 and fitted.shape[0] > own.shape[0]:
            fitted[own.shape[0] :] = 1 - self.mask.pad_value
        return fitted

    def _made(self, source: torch.Tensor, sizes: Sizes, edges: Sizes) -> torch.Tensor:
        """Real up to the true size; rows that are padding themselves see everything, since a softmax over nothing is NaN."""
        place = self.axes.names.index(self.axis)
        size = min(sizes[place], edges[place])
        num_rows = self._num_rows(source)
        if self.mask.kind == "lengths":
            return torch.full((num_rows or 1,), size, dtype=self.mask.made_dtype, device=source.device)
        shape = (source.shape[self.dim],) if num_rows is None else (num_rows, source.shape[self.dim])
        real, padding = (1, 0) if self.mask.kind == "keep" else (0, 1)
        tensor = torch.full(shape, real, dtype=self.mask.made_dtype, device=source.device)
        tensor[..., size:] = padding
        row_axis = None if self.rows is None else self.axes.inputs[self.source].get(self.rows)
        if row_axis is not None and num_rows is not None:
            tensor[sizes[self.axes.names.index(row_axis)] :] = real
        return tensor

    def _num_rows(self, source: torch.Tensor) -> int | None:
        if self.rows is None or source.dim() < 2 or (self.dim == 0 and source.dim() < 3):
            return None
        return source.shape[self.rows]

    def dims(self, own: torch.Tensor, sizes: Sizes) -> dict[int, str]:
        """The varying dimensions of a mask that the caller gave: the last, and in a square the one before; and the rows.

        Raises:
            InputError: its last dimension is not the size that it masks.
        """
        size = sizes[self.axes.names.index(self.axis)]
        if own.dim() == 0 or own.shape[-1] != size:
            raise InputError(
                f"{self.mask.name}: has the shape {list(own.shape)}, but {self.axis} is {size}; declare in dims which of its "
                "dimensions vary"
            )
        last = own.dim() - 1
        rows = None if self.rows is None else self.axes.inputs[self.source].get(self.rows)
        dims = {last: self.axis}
        if own.dim() > 2 and own.shape[-2] == size:
            dims[last - 1] = self.axis
        if own.dim() > 1 and rows is not None and own.shape[0] == sizes[self.axes.names.index(rows)]:
            dims[0] = rows
        return dims


def masking_for(mask: Mask | str | None, axes: Axes, parameters: Collection[str]) -> Masking | None:
    """The mask that a caller asked for, or with `DETECT` the one that is found.

    Raises:
        InputError: the model has no such parameter, or it is not clear which size it masks.
    """
    if mask == DETECT:
        found = find_mask(parameters)
        alone = found is not None and (len(axes.names) == 1 or _one_inner_axis(axes, found.name))
        mask = found if alone else None
        if mask is not None and _only_batch(axes, mask.name):
            return None
    if mask is None:
        return None
    if isinstance(mask, str):
        mask = find_mask([mask]) or Mask(mask)
    if parameters and mask.name not in parameters:
        raise InputError(f"mask: the model has no parameter {mask.name!r}; it has {', '.join(parameters)}")
    return Masking.of(mask, axes)


def _one_inner_axis(axes: Axes, mask: str) -> bool:
    inner = {
        axis for name, dims in axes.inputs.items() for dim, axis in dims.items() if dim != 0 and name != mask
    }
    return len(inner) == 1


def _only_batch(axes: Axes, mask: str) -> bool:
    """Whether only leading dimensions vary: rows of a batch, which no mask of positions is about."""
    return all(
        dim == 0 and axis in {"batch", f"{name}.0"}
        for name, dims in axes.inputs.items()
        for dim, axis in dims.items()
        if name != mask
    )
