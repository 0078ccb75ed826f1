"""Which tensors an exported model takes: a runtime that is given others may compute nonsense in silence."""

from __future__ import annotations

import torch

from pyrometer.errors import InputError
from pyrometer.record import Record


class TensorShape(Record, frozen=True, kw_only=True):
    """One tensor of the inputs.

    Attributes:
        sizes: of each dimension; the first is -1 where the batch may vary.
        strides: that the tensor is laid out with. In dense layouts they do not depend on the size of the batch.
    """

    dtype: str
    device: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, tensor: torch.Tensor, *, varies: bool, contiguous: bool) -> TensorShape:
        """The shape of an example."""
        sizes = tuple(tensor.shape)
        return cls(
            dtype=str(tensor.dtype),
            device=tensor.device.type,
            sizes=(-1, *sizes[1:]) if varies else sizes,
            strides=(tensor.contiguous() if contiguous else tensor).stride(),
        )


class Shapes:
    """The shapes of all inputs, held against the tensors of each call."""

    def __init__(self, shapes: list[TensorShape]) -> None:
        self.shapes = shapes
        self._rows = [
            (getattr(torch, each.dtype.removeprefix("torch.")), each.device, each.sizes, each.strides)
            for each in shapes
        ]

    @property
    def are_fixed(self) -> bool:
        """Whether no dimension may vary."""
        return all(each.sizes[:1] != (-1,) for each in self.shapes)

    def laid_out(self, tensors: tuple[torch.Tensor, ...] | list[torch.Tensor]) -> list[torch.Tensor]:
        """The tensors in the layout that the runtime expects; copied only where theirs is another.

        Raises:
            InputError: a tensor has another dtype, device or shape, or the batches differ.
        """
        batch: int | None = None
        ready = []
        for number, (tensor, row) in enumerate(zip(tensors, self._rows, strict=True)):
            dtype, device, sizes, strides = row
            shape = tuple(tensor.shape)
            varies = sizes[:1] == (-1,)
            fits = len(shape) == len(sizes) and (shape[1:] == sizes[1:] if varies else shape == sizes)
            if varies and fits:
                batch = shape[0] if batch is None else batch
                fits = shape[0] == batch
            if not fits or tensor.dtype != dtype or tensor.device.type != device:
                raise InputError(self._refusal(number, tensor))
            if tensor.requires_grad:
                tensor = tensor.detach()  # noqa: PLW2901 - the same tensor, without its history
            ready.append(tensor if tensor.stride() == strides else _copied(tensor, strides))
        return ready

    def _refusal(self, number: int, tensor: torch.Tensor) -> str:
        shape = self.shapes[number]
        sizes = ", ".join("any" if size < 0 else str(size) for size in shape.sizes)
        return (
            f"input {number + 1}: got {tensor.dtype}{list(tensor.shape)} on {tensor.device.type}; the model was exported for "
            f"{shape.dtype}[{sizes}] on {shape.device}, and one size of the batch for all: tune with inputs of these shapes"
        )


def _copied(tensor: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    laid = torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device)
    return laid.copy_(tensor)
