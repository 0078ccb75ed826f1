"""What a compiled graph with fixed sizes depends on, besides the program itself: inputs and modes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

_PLAIN = (int, float, bool, str, bytes, type(None), torch.dtype, torch.device)


def signature_of(model: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
    """Two calls of the same signature can share a graph: equal shapes, strides, dtypes, values, modes and aliasing.

    >>> x = torch.zeros(2)
    >>> signature_of(len, (x,), {}) == signature_of(len, (x + 1,), {}), signature_of(len, (x, x), {}) == signature_of(
    ...     len, (x, x + 1), {}
    ... )
    (True, False)
    """
    first: dict[int, int] = {}
    parts: list[Hashable] = [_of(value, first) for value in args]
    if kwargs:
        parts += [(name, _of(kwargs[name], first)) for name in sorted(kwargs)]
    return (*parts, *_modes(model))


def _modes(model: Callable[..., Any]) -> tuple[Hashable, ...]:
    """What Dynamo guards on outside of the inputs and is changed in the course of a program."""
    return (
        isinstance(model, nn.Module) and model.training,
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        *((kind, torch.get_autocast_dtype(kind)) for kind in _DEVICES if torch.is_autocast_enabled(kind)),
    )


_DEVICES = ("cpu", "cuda", "xpu")


def _of(value: Any, first: dict[int, int]) -> Hashable:
    if isinstance(value, torch.Tensor):
        # The number of the first place at which the same tensor stands: aliases are compiled differently.
        place = first.setdefault(id(value), len(first))
        layout = value.stride() if value.layout == torch.strided else value.layout
        return (
            place,
            value.shape,
            value.dtype,
            value.device,
            layout,
            value.requires_grad,
            value.is_inference(),
        )
    if isinstance(value, _PLAIN):
        return type(value), value
    leaves, nesting = pytree.tree_flatten(value)
    if len(leaves) == 1 and leaves[0] is value:
        return type(value), id(value)
    return str(nesting), tuple(_of(leaf, first) for leaf in leaves)
