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
    batch_scale: float = 1.0
    """Leading dimension over that of the inputs as the user made them; differs from one with `batch_size`."""

    def as_given(self) -> Any:
        """The inputs in the form that the user's functions of them expect: a dict, a tuple, or the only one."""
        if self.kwargs:
            return self.kwargs
        return self.args[0] if len(self.args) == 1 else self.args

    def tensors(self) -> list[torch.Tensor]:
        """Every tensor inside, however nested."""
        return [
            leaf for leaf in pytree.tree_leaves((self.args, self.kwargs)) if isinstance(leaf, torch.Tensor)
        ]

    def mapped(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Arguments:
        """The same with every tensor changed."""
        args, kwargs = pytree.tree_map_only(torch.Tensor, change, (self.args, self.kwargs))
        return self._replace(args=args, kwargs=kwargs)


ArgumentSource: TypeAlias = Callable[[], Arguments]


def argument_source(inputs: Any, device: torch.device, variant: Variant) -> tuple[ArgumentSource, bool]:
    """Bring `inputs` to a function that returns the arguments of the next step.

    A tensor is the only argument; a tuple holds the positional arguments; a mapping the keyword arguments; a
    callable is called for each step and returns any of these; a list of shapes gives random float32 tensors of
    these shapes, one after the other in turn. Inputs are handed over as they are: a forward pass that changes them in
    place needs a callable.

    Returns:
        The function, and whether every call returns the same objects.

    Raises:
        InputError: `inputs` has none of these forms.
    """
    if callable(inputs) and not isinstance(inputs, torch.Tensor):
        return lambda: adapted(as_arguments(inputs()), variant), False
    if is_shape_list(inputs):
        turn = _in_turn(inputs, device, variant)
        return lambda: next(turn), len(inputs) == 1
    fixed = adapted(as_arguments(inputs), variant)
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
    hint = "; write several arguments as a tuple" if isinstance(value, list) else ""
    raise InputError(f"inputs: got {type(value).__name__}; legal are {legal}{hint}")


def fresh_copies(value: Any) -> Any:
    """The same with plain tensors copied, each once; `None` where there are none.

    A tensor that a copy would change in layout or marks stays itself, and one in pinned memory, which devices read faster.

    >>> x = torch.zeros(2)
    >>> a, b, name = fresh_copies((x, x, "x"))
    >>> a is b, a is x, name
    (True, False, 'x')
    """
    copies: dict[int, torch.Tensor] = {}

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        is_plain = type(tensor) is torch.Tensor and tensor.layout is torch.strided and not vars(tensor)
        if not (is_plain and tensor.is_contiguous()) or tensor.is_pinned():
            return tensor
        if id(tensor) not in copies:
            copies[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        return copies[id(tensor)]

    fresh = pytree.tree_map_only(torch.Tensor, copied, value)
    return fresh if copies else None


def is_shape_list(value: Any) -> bool:
    """Whether `value` is a non-empty list of tuples of non-negative integers."""
    return isinstance(value, list) and bool(value) and all(_is_shape(shape) for shape in value)


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(size, int) and size >= 0 for size in value)


def adapted(arguments: Arguments, variant: Variant) -> Arguments:
    """Apply a variant to every tensor of the arguments.

    The leading dimension of the first tensor is the batch; with `batch_size`, every tensor that shares it is repeated
    or cut, the others (a camera matrix, position numbers) stay as they are.
    """
    if not variant.changes_parameters and variant.batch_size is None:
        return arguments
    batch = leading_dimension(arguments)

    def adapt(tensor: torch.Tensor) -> torch.Tensor:
        if variant.batch_size is not None and tensor.dim() > 0 and tensor.shape[0] == batch:
            tensor = _resized(tensor, variant.batch_size)
        return variant.apply_to_tensor(tensor)

    scale = variant.batch_size / batch if variant.batch_size and batch else 1.0
    return arguments.mapped(adapt)._replace(batch_scale=scale)


def leading_dimension(arguments: Arguments) -> int | None:
    """The first dimension of the first tensor that has one."""
    first = arguments.args[0] if arguments.args else None
    if isinstance(first, torch.Tensor) and first.dim() > 0:
        return first.shape[0]  # the common case, without the microseconds of a walk through the tree
    return next((tensor.shape[0] for tensor in arguments.tensors() if tensor.dim() > 0), None)


def _resized(tensor: torch.Tensor, batch_size: int) -> torch.Tensor:
    if tensor.shape[0] in {0, batch_size}:
        return tensor
    repeats = -(-batch_size // tensor.shape[0])
    return tensor.repeat(repeats, *[1] * (tensor.dim() - 1))[:batch_size].contiguous()


def _in_turn(shapes: list[Shape], device: torch.device, variant: Variant) -> Iterator[Arguments]:
    generator = torch.Generator(device="cpu").manual_seed(0)
    tensors = [
        torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu").to(device)
        for shape in shapes
    ]
    return itertools.cycle([adapted(Arguments((tensor,), {}), variant) for tensor in tensors])
