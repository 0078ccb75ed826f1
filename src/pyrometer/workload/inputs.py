"""The forms that a model's inputs may take, brought to one: a function that makes the arguments of a step."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.utils import _pytree as pytree

from pyrometer.errors import InputError
from pyrometer.workload.variant import Variant

Shape: TypeAlias = tuple[int, ...]


class Arguments(NamedTuple):
    """Positional and keyword arguments of one call of the model."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def tensors(self) -> list[torch.Tensor]:
        """Every tensor inside, however nested."""
        return [leaf for leaf in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(leaf, torch.Tensor)]


ArgumentSource: TypeAlias = Callable[[], Arguments]


def argument_source(inputs: Any, device: torch.device, variant: Variant) -> tuple[ArgumentSource, bool]:
    """Bring `inputs` to a function that returns the arguments of the next step.

    A tensor is the only argument; a tuple holds the positional arguments; a mapping the keyword arguments; a
    callable is called for each step and returns any of these; a list of shapes gives random float32 tensors of
    these shapes, one after the other in turn.

    Returns:
        The function, and whether every call returns the same objects.

    Raises:
        InputError: `inputs` has none of these forms.
    """
    if callable(inputs) and not isinstance(inputs, torch.Tensor):
        return lambda: adapt(as_arguments(inputs()), variant), False
    if is_shape_list(inputs):
        turn = _in_turn(inputs, device, variant)
        return lambda: next(turn), len(inputs) == 1
    fixed = adapt(as_arguments(inputs), variant)
    return lambda: fixed, True


def as_arguments(value: Any) -> Arguments:
    """Bring one set of inputs to positional and keyword arguments."""
    if isinstance(value, Arguments):
        return value
    if isinstance(value, torch.Tensor):
        return Arguments((value,), {})
    if isinstance(value, tuple):
        return Arguments(value, {})
    if isinstance(value, Mapping):
        return Arguments((), dict(value))
    legal = "a tensor, a tuple of arguments, a dict of keyword arguments, a callable, or a list of shapes"
    raise InputError(f"inputs: got {type(value).__name__}; legal are {legal}")


def is_shape_list(value: Any) -> bool:
    """Whether `value` is a non-empty list of tuples of integers."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(shape, (tuple, torch.Size)) and all(isinstance(n, int) for n in shape) for shape in value)
    )


def adapt(arguments: Arguments, variant: Variant) -> Arguments:
    """Apply a variant to every tensor of the arguments."""
    if variant.dtype is None and variant.memory_format is None and variant.batch_size is None:
        return arguments
    args, kwargs = pytree.tree_map_only(torch.Tensor, variant.apply_to_tensor, (arguments.args, arguments.kwargs))
    return Arguments(args, kwargs)


def _in_turn(shapes: list[Shape], device: torch.device, variant: Variant) -> Iterator[Arguments]:
    generator = torch.Generator(device="cpu").manual_seed(0)
    made = [
        adapt(Arguments((torch.randn(shape, generator=generator).to(device),), {}), variant) for shape in shapes
    ]
    return itertools.cycle(made)
