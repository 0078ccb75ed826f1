"""What a served model takes and gives: names, types and sizes, read off the example inputs of the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.errors import InputError
from pyrometer.tuning.shapes.axes import parameters_of
from pyrometer.workload.inputs import Arguments, leading_dimension

DATATYPES: dict[torch.dtype, str] = {
    torch.bool: "BOOL",
    torch.uint8: "UINT8",
    torch.uint16: "UINT16",
    torch.uint32: "UINT32",
    torch.uint64: "UINT64",
    torch.int8: "INT8",
    torch.int16: "INT16",
    torch.int32: "INT32",
    torch.int64: "INT64",
    torch.float16: "FP16",
    torch.bfloat16: "BF16",
    torch.float32: "FP32",
    torch.float64: "FP64",
}
"""Names of the Open Inference Protocol."""
_CARRIERS: dict[torch.dtype, np.dtype[Any]] = {
    dtype: np.dtype(np.uint16) if dtype is torch.bfloat16 else torch.empty(0, dtype=dtype).numpy().dtype
    for dtype in DATATYPES
}
VARYING = -1
"""Stands for a size that may differ from request to request."""


@dataclass(frozen=True)
class TensorSpec:
    """One input or output.

    Attributes:
        name: in requests and answers.
        dtype: of torch.
        dims: sizes, the first that of the batch; `VARYING` where it may differ.
        datatype: as the protocol calls it.
        carrier: what numpy holds it as: bfloat16, which numpy lacks, as the same bits.
    """

    name: str
    dtype: torch.dtype
    dims: tuple[int, ...]
    datatype: str = field(init=False)
    carrier: np.dtype[Any] = field(init=False)

    def __post_init__(self) -> None:
        """Looked up once: each request asks for them."""
        object.__setattr__(self, "datatype", DATATYPES[self.dtype])
        object.__setattr__(self, "carrier", _CARRIERS[self.dtype])

    def to_torch(self, array: np.ndarray[Any, Any]) -> torch.Tensor:
        """A tensor over the same memory."""
        tensor = torch.from_numpy(array)
        return tensor.view(torch.bfloat16) if self.dtype is torch.bfloat16 else tensor


class Signature(NamedTuple):
    """Inputs and outputs of a model, and how a call is put together.

    Attributes:
        inputs: in the order in which requests are put together.
        outputs: of each row.
        call: the example call, whose batched tensors are replaced; what else is in it stays.
        leaves: places of the outputs among the leaves of what the model returns.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    call: Arguments
    leaves: tuple[int, ...] = ()

    def arguments(
        self, values: dict[str, torch.Tensor], positions: dict[str, int]
    ) -> tuple[list[Any], dict[str, Any]]:
        """A call of the model with these inputs."""
        args, kwargs = list(self.call.args), dict(self.call.kwargs)
        for name, value in values.items():
            if name in kwargs or positions.get(name, len(args)) >= len(args):
                kwargs[name] = value
            else:
                args[positions[name]] = value
        return args, kwargs


def to_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """An array over the memory of a tensor of the CPU."""
    plain = tensor.view(torch.uint16) if tensor.dtype is torch.bfloat16 else tensor
    return plain.numpy()


def inputs_of(model: nn.Module, call: Arguments, varying: dict[str, set[int]]) -> tuple[TensorSpec, ...]:
    """The inputs that requests give: every tensor of the example call whose first size is that of the batch.

    Args:
        model: names the positional ones.
        call: the example inputs.
        varying: dimensions that may differ, by input.

    Raises:
        InputError: there is none, or one that no request can give.
    """
    rows = leading_dimension(call)
    if not rows:
        raise InputError("inputs: hold no tensor with a leading dimension, so requests cannot share a batch")
    found = [
        _spec(name, value, varying.get(name, set()))
        for name, value in _named(model, call)
        if isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] == rows
    ]
    nested = next(
        (name for name, value in _named(model, call) if isinstance(value, (list, tuple, dict))), None
    )
    if nested is not None:
        raise InputError(
            f"input {nested!r}: is nested; a served model takes tensors as arguments of their own"
        )
    return tuple(found)


def outputs_of(few: Any, more: Any, rows: tuple[int, int]) -> tuple[tuple[TensorSpec, ...], tuple[int, ...]]:
    """The outputs: every tensor of what the model returns whose first size follows the batch, and its place among the leaves.

    Args:
        few: what the model returned for fewer rows.
        more: what it returned for more.
        rows: of the two.

    Raises:
        InputError: no output follows the batch.
    """
    leaves = pytree.tree_flatten_with_path(few)[0]
    others = pytree.tree_leaves(more)
    specs: list[TensorSpec] = []
    places: list[int] = []
    for place, ((path, leaf), other) in enumerate(zip(leaves, others, strict=False)):
        if _follows(leaf, other, rows):
            dims = tuple(
                size if size == own and dim else VARYING
                for dim, (size, own) in enumerate(zip(leaf.shape, other.shape, strict=True))
            )
            specs.append(TensorSpec(_output_name(path), leaf.dtype, dims))
            places.append(place)
    if not specs:
        raise InputError(
            "outputs: none has the size of the batch as its first; let the model return one row per input row"
        )
    return tuple(specs), tuple(places)


def _follows(leaf: Any, other: Any, rows: tuple[int, int]) -> bool:
    return (
        isinstance(leaf, torch.Tensor)
        and isinstance(other, torch.Tensor)
        and leaf.dim() == other.dim() > 0
        and (leaf.shape[0], other.shape[0]) == rows
        and leaf.dtype in DATATYPES
    )


def _output_name(path: Sequence[Any]) -> str:
    """`output` alone, `output_1` in a tuple, and the key in a mapping."""
    parts = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path]
    name = ".".join(parts)
    return f"output_{name}" if name[:1].isdigit() else name or "output"


def _named(model: nn.Module, call: Arguments) -> list[tuple[str, Any]]:
    names = list(parameters_of(model) or {})
    positional = [
        (names[place] if place < len(names) else f"input_{place}", value)
        for place, value in enumerate(call.args)
    ]
    return [*positional, *call.kwargs.items()]


def _spec(name: str, value: torch.Tensor, varying: set[int]) -> TensorSpec:
    if value.dtype not in DATATYPES:
        raise InputError(f"input {name!r}: is {value.dtype}; legal are {', '.join(map(str, DATATYPES))}")
    beyond = [dim for dim in varying if not 1 <= dim < value.dim()]
    if beyond:
        raise InputError(
            f"buckets: dimension {beyond[0]} of {name!r} cannot vary: it has the shape {list(value.shape)}; legal are "
            f"dimensions from 1 to {value.dim() - 1}, since the first is the batch"
        )
    dims = tuple(VARYING if dim == 0 or dim in varying else size for dim, size in enumerate(value.shape))
    return TensorSpec(name, value.dtype, dims)
