"""Which dimensions of which inputs vary, and what is done to the inputs of a call so that they fit."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import nn

from pyrometer.errors import InputError
from pyrometer.workload.state import inference_mode
from pyrometer.workload.target import nearest

Dims: TypeAlias = "Mapping[str, Mapping[int, str | Sequence[int] | None] | Iterable[int] | int]"
"""Input name → its varying dimensions; with a name for each size, dimensions of the same name vary together.

In place of a name the edges of the size may stand, rising; inputs with the same edges vary together.
"""

CallArguments: TypeAlias = tuple[tuple[Any, ...], Mapping[str, Any]]
"""Of one call of the model: by position, and by keyword."""

Sizes: TypeAlias = tuple[int, ...]
"""One size per axis, in the order in which the axes were declared."""


@dataclass(frozen=True)
class Axes:
    """The varying sizes of a model's inputs.

    Attributes:
        names: of the sizes.
        inputs: by input name, the axis of each varying dimension.
        positions: of the parameters that can be given by position.
        pad_values: by input name; 0 otherwise.
        edges: by name of the size, where they are given by hand.
    """

    names: tuple[str, ...]
    inputs: dict[str, dict[int, str]]
    positions: dict[str, int]
    pad_values: dict[str, float] = field(default_factory=dict)
    edges: dict[str, list[int]] = field(default_factory=dict)

    def get(self, name: str, call: CallArguments) -> Any:
        """An input of a call, by keyword or position; `None` when it is not given."""
        args, kwargs = call
        if name in kwargs:
            return kwargs[name]
        position = self.positions.get(name, len(args))
        return args[position] if position < len(args) else None

    def by_name(self, sizes: Sizes) -> dict[str, int]:
        """Sizes by the name of their axis."""
        return dict(zip(self.names, sizes, strict=True))

    def sizes(self, call: CallArguments) -> Sizes:
        """The sizes of a call.

        Raises:
            InputError: an input that is no tensor, or as of `sizes_of`.
        """
        shapes: dict[str, Sequence[int]] = {}
        for name in self.inputs:
            value = self.get(name, call)
            if isinstance(value, torch.Tensor):
                shapes[name] = value.shape
            elif value is not None:
                raise InputError(f"{name}: got {type(value).__name__}; only tensors can be padded")
        return self.sizes_of(shapes, "the call")

    def sizes_of(self, shapes: Mapping[str, Sequence[int]], where: str) -> Sizes:
        """The sizes of inputs with these shapes.

        Raises:
            InputError: an input with too few dimensions, inputs that disagree, or a size that no input has; says where.
        """
        found: dict[str, int] = {}
        for name, dims in self.inputs.items():
            for dim, axis in dims.items() if name in shapes else ():
                shape = shapes[name]
                if not -len(shape) <= dim < len(shape):
                    raise InputError(
                        f"{where}: {name} has the shape {list(shape)}, without the dimension {dim} that is declared to vary; "
                        f"legal are dimensions from {-len(shape)} to {len(shape) - 1}"
                    )
                if found.setdefault(axis, shape[dim]) != shape[dim]:
                    raise InputError(
                        f"{where}: dimension {dim} of {name} is {shape[dim]}, but {axis} is {found[axis]} in another input; "
                        "dimensions that vary for themselves need different names in dims"
                    )
        missing = next((axis for axis in self.names if axis not in found), None)
        if missing is not None:
            raise InputError(
                f"{where}: has the inputs {', '.join(shapes) or 'none'}, none of which tells {missing}; "
                f"give the shape of {' or '.join(name for name, dims in self.inputs.items() if missing in dims.values())}"
            )
        return tuple([found[axis] for axis in self.names])

    def with_sizes(self, call: CallArguments, sizes: Sizes) -> CallArguments:
        """The call with its declared inputs padded, or cut, to sizes."""
        wanted = self.by_name(sizes)
        fitted = {}
        for name, dims in self.inputs.items():
            value = self.get(name, call)
            if value is not None:
                targets = {dim: wanted[axis] for dim, axis in dims.items()}
                fitted[name] = fit(value, targets, self.pad_values.get(name, 0.0))
        return self.replaced(call, fitted)

    def replaced(self, call: CallArguments, values: Mapping[str, Any]) -> CallArguments:
        """The call with other values for inputs that it gives, by keyword or position as before."""
        new_args, new_kwargs = list(call[0]), dict(call[1])
        for name, value in values.items():
            if name in new_kwargs:
                new_kwargs[name] = value
            else:
                new_args[self.positions[name]] = value
        return tuple(new_args), new_kwargs


def declare_axes(
    model: Callable[..., Any], dims: Dims, pad_values: Mapping[str, float] | None = None
) -> Axes:
    """Read the declaration of the varying dimensions.

    Raises:
        InputError: nothing is declared, an unknown input, or a dimension that is no whole number.

    >>> axes = declare_axes(nn.Linear(4, 4), {"input": {0: "batch"}})
    >>> axes.sizes(((torch.zeros(3, 4),), {}))
    (3,)
    """
    if not dims:
        raise InputError(
            'dims: nothing is declared; name the inputs whose size varies: {"x": {0: "batch"}} or {"x": [1]}'
        )
    parameters = parameters_of(model)
    open_ended = parameters is None or any(
        kind is inspect.Parameter.VAR_KEYWORD for kind in parameters.values()
    )
    inputs: dict[str, dict[int, str]] = {}
    edges: dict[str, list[int]] = {}
    for name, declared in dims.items():
        if not open_ended and parameters is not None and name not in parameters:
            raise InputError(f"dims: the model has no input {name!r}; {_legal_names(name, parameters)}")
        inputs[name] = {dim: _axis(name, dim, own, edges) for dim, own in _by_dim(name, declared).items()}
    unknown = sorted(set(pad_values or {}) - set(inputs))
    if unknown:
        raise InputError(f"pad_values: {unknown[0]!r} is not among the inputs in dims: {', '.join(inputs)}")
    names = tuple(dict.fromkeys(axis for axes in inputs.values() for axis in axes.values()))
    unlike = [axis for axis in names if axis not in edges]
    if edges and unlike:
        raise InputError(
            f"dims: edges are given for {', '.join(edges)} but not for {', '.join(unlike)}; give them for every size, or for none"
        )
    return Axes(names, inputs, _positions(parameters or {}), dict(pad_values or {}), edges)


def parameters_of(model: Callable[..., Any]) -> dict[str, Any] | None:
    """The kinds of the parameters of a model's forward or of a function, by name; `None` when they cannot be told."""
    target = model.forward if isinstance(model, nn.Module) else model
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return None
    return {name: parameter.kind for name, parameter in signature.parameters.items()}


class Padding(NamedTuple):
    """What is added to the end of some dimensions of a tensor.

    Attributes:
        amounts: as `torch.nn.functional.pad` takes them.
        value: what is added.
        layout: memory format of the result, which has no gaps; `None` where it comes about by itself.
        outside: whether inference mode is left for it, see `like_the_tensor`.
    """

    amounts: list[int]
    value: float
    layout: torch.memory_format | None
    outside: bool

    def apply(self, tensor: torch.Tensor) -> torch.Tensor:
        """The padded tensor."""
        if self.layout is None and not self.outside:
            return torch.constant_pad_nd(tensor, self.amounts, self.value)
        if self.layout is None and not tensor.requires_grad:
            with inference_mode(False):
                return torch.constant_pad_nd(tensor, self.amounts, self.value)
        with like_the_tensor(tensor):
            padded = torch.constant_pad_nd(tensor, self.amounts, self.value)
            return padded.contiguous(memory_format=self.layout or torch.contiguous_format)


def padding_of(tensor: torch.Tensor, sizes: Mapping[int, int], value: float) -> Padding | None:
    """What makes a tensor dense and at least as large as these sizes; `None` where it is so already.

    The result has the tensor's own memory format, so that equal sizes have equal strides.
    """
    amounts = [0] * (2 * tensor.dim())
    for dim, size in sizes.items():
        amounts[2 * (tensor.dim() - 1 - dim % tensor.dim()) + 1] = max(size - tensor.shape[dim], 0)
    layout = _dense_format(tensor)
    if not any(amounts) and layout is not None:
        return None
    outside = torch.is_inference_mode_enabled() and not tensor.is_inference()
    # From four dimensions on torch may take a tensor that is dense in two formats for the other one.
    plain = layout is torch.contiguous_format and tensor.dim() < 4
    return Padding(amounts, value, None if plain else layout or torch.contiguous_format, outside)


def fit(tensor: torch.Tensor, sizes: Mapping[int, int], value: float) -> torch.Tensor:
    """Cut or pad the end of some dimensions; the same tensor when it fits already.

    >>> fit(torch.ones(1, 2), {1: 4}, 0).tolist(), fit(torch.ones(1, 2), {1: 1}, 0).tolist()
    ([[1.0, 1.0, 0.0, 0.0]], [[1.0]])
    """
    for dim, size in sizes.items():
        if tensor.shape[dim] > size:
            tensor = tensor.narrow(dim, 0, size)
    padding = padding_of(tensor, sizes, value)
    return tensor if padding is None else padding.apply(tensor)


def like_the_tensor(tensor: torch.Tensor) -> contextlib.AbstractContextManager[Any]:
    """Where to make a tensor from another, so that both are of one kind.

    In inference mode new tensors are of another kind than those made outside, and Dynamo compiles anew for it.
    """
    if not torch.is_inference_mode_enabled() or tensor.is_inference():
        return contextlib.nullcontext()
    stack = contextlib.ExitStack()
    stack.enter_context(inference_mode(False))
    stack.enter_context(torch.no_grad())
    return stack


def _dense_format(tensor: torch.Tensor) -> torch.memory_format | None:
    """The memory format in which a tensor has no gaps; `None` if in none."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    candidates = (torch.contiguous_format, formats.get(tensor.dim(), torch.contiguous_format))
    return next(
        (candidate for candidate in candidates if tensor.is_contiguous(memory_format=candidate)), None
    )


def _axis(name: str, dim: int, own: Any, edges: dict[str, list[int]]) -> str:
    """The name of a size; edges given by hand are noted, and equal ones belong to one size."""
    if isinstance(own, str):
        return own
    if own is None:
        return f"{name}.{dim}"
    axis = next((axis for axis, known in edges.items() if known == own), f"{name}.{dim}")
    edges[axis] = own
    return axis


def _by_dim(name: str, declared: Any) -> dict[int, str | list[int] | None]:
    if isinstance(declared, Mapping):
        pairs = {dim: None if own is ... else own for dim, own in declared.items()}
    elif isinstance(declared, Iterable) and not isinstance(declared, str):
        pairs = dict.fromkeys(declared)
    else:
        pairs = {declared: None}
    if not pairs or any(
        not isinstance(dim, int) or isinstance(dim, bool) or not _legal(own) for dim, own in pairs.items()
    ):
        raise InputError(
            f'dims: {name!r}: got {declared!r}; legal are a dimension, a list of them, {{0: "batch"}} or, with edges that rise '
            "from at least 1, {1: [128, 160, 200]}"
        )
    return {dim: list(own) if isinstance(own, (list, tuple)) else own for dim, own in pairs.items()}


def _legal(own: Any) -> bool:
    """Whether this may stand for a size: a name, nothing, or rising edges."""
    if not isinstance(own, (list, tuple)):
        return own is None or isinstance(own, str)
    whole = bool(own) and all(type(edge) is int and edge >= 1 for edge in own)
    return whole and all(low < high for low, high in itertools.pairwise(own))


def _positions(parameters: Mapping[str, Any]) -> dict[str, int]:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return {
        name: position
        for position, name in enumerate(name for name, kind in parameters.items() if kind in positional)
    }


def _legal_names(name: str, parameters: Mapping[str, Any]) -> str:
    return f"its inputs are {', '.join(parameters)}{nearest(name, parameters)}"
