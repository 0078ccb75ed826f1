"""Which dimensions of a program's inputs are the batch and the sequence, and the same inputs in other sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import torch

from pyrometer.errors import InputError

BATCH, SEQUENCE = "B", "T"

Dims: TypeAlias = Mapping[str, Mapping[int, str]]
"""Input name → its dimensions that are the batch, `"B"`, or the sequence, `"T"`."""

Axes: TypeAlias = dict[str, dict[int, str]]

_HINT = 'say which dimensions they are, such as dims={{"{name}": {{0: "B", 1: "T"}}}}'


def named_tensors(tree: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of a batch with names: keys and positions, joined by dots.

    >>> [name for name, _ in named_tensors(({"ids": torch.zeros(2)}, torch.zeros(2)))]
    ['0.ids', '1']
    """
    if isinstance(tree, torch.Tensor):
        yield name or "0", tree
        return
    if isinstance(tree, Mapping):
        parts: Any = tree.items()
    elif isinstance(tree, (list, tuple)):
        parts = enumerate(tree)
    else:
        # A dataclass or a batch encoding; deeper than its attributes nothing is expected.
        parts = [(k, v) for k, v in getattr(tree, "__dict__", {}).items() if _holds_tensors(v)]
    for key, part in parts:
        yield from named_tensors(part, f"{name}.{key}" if name else str(key))


def axes_of(inputs: Any, dims: Dims | None = None) -> Axes:
    """By name, the dimensions of inputs that are the batch or the sequence.

    The batch is the leading dimension of the first tensor, in all that share it. The sequence is the next dimension of
    whole numbers `[B, T]` and of `[B, T, d]`, in all that share it, and in masks `[…, T, T]`.

    Raises:
        InputError: `dims` names what is not there.
    """
    tensors = dict(named_tensors(inputs))
    if dims is not None:
        return _declared(tensors, dims)
    batch = next((tensor.shape[0] for tensor in tensors.values() if tensor.dim()), None)
    lengths = _lengths(tensors, batch)
    sequence = lengths.most_common(1)[0][0] if len(lengths) == 1 else None
    axes = {name: _axes_of_tensor(tensor, batch, sequence) for name, tensor in tensors.items()}
    return {name: axis for name, axis in axes.items() if axis}


def size_of(inputs: Any, axes: Axes, axis: str) -> int | None:
    """The present size of the batch or the sequence; `None` where no input has it."""
    tensors = dict(named_tensors(inputs))
    sizes = [
        tensors[name].shape[dim]
        for name, dims in axes.items()
        if name in tensors
        for dim, own in dims.items()
        if own == axis
    ]
    return sizes[0] if sizes else None


def require_axis(inputs: Any, axes: Axes, axis: str) -> None:
    """Raise when no input has a dimension that is to change.

    Raises:
        InputError: it says what to pass.
    """
    if size_of(inputs, axes, axis) is not None:
        return
    tensors = dict(named_tensors(inputs))
    shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in tensors.items())
    batch = next((tensor.shape[0] for tensor in tensors.values() if tensor.dim()), None)
    lengths = _lengths(tensors, batch) if axis == SEQUENCE else {}
    what = "sequence" if axis == SEQUENCE else "batch"
    why = (
        f"could be one of {', '.join(map(str, sorted(lengths)))}"
        if len(lengths) > 1
        else "cannot be told from the shapes"
    )
    raise InputError(
        f"{what}: its dimension {why} ({shapes or 'no tensors'}); {_HINT.format(name=next(iter(tensors), 'x'))}"
    )


def require_clear_sequence(inputs: Any, axes: Axes) -> None:
    """Raise where the length is only told by inputs `[B, n, n]`, of which either `n` may be the sequence.

    Raises:
        InputError: it says what to pass.
    """
    tensors = dict(named_tensors(inputs))
    telling = {
        name: tensor
        for name, tensor in tensors.items()
        if axes.get(name, {}).get(0) == BATCH and axes[name].get(1) == SEQUENCE
    }
    square = [
        name for name, tensor in telling.items() if tensor.dim() == 3 and tensor.shape[1] == tensor.shape[2]
    ]
    if square and len(square) == len(telling):
        shape = list(tensors[square[0]].shape)
        raise InputError(
            f"sequence: its dimension is ambiguous in {square[0]} {shape}, whose last two are equally long; "
            f"{_HINT.format(name=square[0])}"
        )


def resized_shape(shape: torch.Size, axes: Mapping[int, str], sizes: Mapping[str, int | None]) -> list[int]:
    """A shape with the batch and the sequence in other sizes.

    >>> resized_shape(torch.Size([8, 128, 64]), {0: "B", 1: "T"}, {"B": 2, "T": None})
    [2, 128, 64]
    """
    new = list(shape)
    for dim, axis in axes.items():
        new[dim] = sizes.get(axis) or new[dim]
    return new


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, Mapping, list, tuple))


def _lengths(tensors: Mapping[str, torch.Tensor], batch: int | None) -> Counter[int]:
    """What the sequence may be long, with the number of inputs that speak for it."""
    return Counter(
        tensor.shape[1]
        for tensor in tensors.values()
        if tensor.dim() >= 2
        and tensor.shape[0] == batch
        and (tensor.dim() == 3 or (tensor.dim() == 2 and _is_whole(tensor)))
    )


def _is_whole(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex())


def _axes_of_tensor(tensor: torch.Tensor, batch: int | None, sequence: int | None) -> dict[int, str]:
    shape, last = tensor.shape, tensor.dim() - 1
    axes: dict[int, str] = {}
    if not shape:
        return axes
    if shape[0] == batch:
        axes[0] = BATCH
        if last >= 1 and shape[1] == sequence:
            axes[1] = SEQUENCE
    elif last == 0 and shape[0] == sequence and _is_whole(tensor):
        axes[0] = SEQUENCE  # the numbers of the positions
    if sequence is not None and last >= 1 and shape[last] == shape[last - 1] == sequence:
        axes |= dict.fromkeys(
            {last - 1, last} - {dim for dim, axis in axes.items() if axis == BATCH}, SEQUENCE
        )
    return axes


def _declared(tensors: Mapping[str, torch.Tensor], dims: Dims) -> Axes:
    axes: Axes = {}
    for name, declared in dims.items():
        if name not in tensors:
            raise InputError(
                f"dims: there is no input {name!r}; the inputs are {', '.join(tensors) or 'none'}"
            )
        rank = tensors[name].dim()
        for dim, axis in declared.items():
            if axis not in {BATCH, SEQUENCE} or not -rank <= dim < rank:
                raise InputError(
                    f"dims: {name!r}: got {{{dim}: {axis!r}}}; legal are dimensions below {rank}, each 'B' or 'T'"
                )
            axes.setdefault(name, {})[dim % rank] = axis
    return axes
