"""The form of a call: how arguments become a flat list of tensors, and how flat results of a runtime become the output again."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.errors import InputError
from pyrometer.tuning.levers.runtimes.shapes import Shapes
from pyrometer.workload.inputs import Arguments

Run: TypeAlias = Callable[[list[torch.Tensor]], Sequence[torch.Tensor]]
"""Computes flat results of flat inputs."""


class CallForm:
    """How a model is called, learned from one call; whatever is no tensor is a constant of what is exported."""

    def __init__(self, model: nn.Module, example: Arguments, output: Any) -> None:
        self._num_args, self._names = len(example.args), tuple(example.kwargs)
        self._signature = inspect.signature(model.forward)
        leaves, self._spec = pytree.tree_flatten((example.args, example.kwargs))
        self._constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.tensors: list[torch.Tensor] = [leaves[place] for place in self._places]
        self._is_plain = self._num_args == len(leaves) == len(self._places)
        results, self._output_spec = pytree.tree_flatten(output)
        self._results = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in results]
        distinct = {id(leaf): leaf for leaf in results if isinstance(leaf, torch.Tensor)}
        self.outputs: list[torch.Tensor] = list(distinct.values())
        order = list(distinct)
        self._sources = [
            order.index(id(leaf)) if isinstance(leaf, torch.Tensor) else None for leaf in results
        ]
        self._is_single = self._output_spec.is_leaf()

    def flat(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Sequence[torch.Tensor]:
        """The tensors of a call.

        Raises:
            InputError: the arguments have another structure, or a value that is no tensor is another one.
        """
        if len(args) != self._num_args or tuple(kwargs) != self._names:
            args, kwargs = self._arranged(args, kwargs)
        if self._is_plain and all(isinstance(leaf, torch.Tensor) for leaf in args):
            return args
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._spec:
            raise InputError(
                "the arguments are nested in another way than those that the model was exported with"
            )
        tensors = []
        for leaf, constant in zip(leaves, self._constants, strict=True):
            if isinstance(leaf, torch.Tensor) and constant is None:
                tensors.append(leaf)
            elif leaf is not constant and leaf != constant:
                raise InputError(
                    f"got {leaf!r} where the model was exported with {constant!r}, which is fixed in it"
                )
        if len(tensors) != len(self._places):
            raise InputError("got a value where the model was exported with a tensor")
        return tensors

    def _arranged(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same arguments, by position and by name as in the example."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InputError(f"the arguments do not fit the model: {error}") from error
        given = dict(bound.arguments)
        first = list(self._signature.parameters)[: self._num_args]
        if set(given) != {*first, *self._names}:
            exported = ", ".join([*first, *self._names])
            raise InputError(f"got the arguments {', '.join(given)}; the model was exported with {exported}")
        return tuple(given[name] for name in first), {name: given[name] for name in self._names}

    def arguments(self, tensors: Iterable[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call with these tensors."""
        leaves = list(self._constants)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        arguments: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_unflatten(leaves, self._spec)
        return arguments

    def distinct(self, output: Any) -> tuple[torch.Tensor, ...]:
        """The tensors of an output, each once, as a runtime has to return them."""
        leaves = pytree.tree_leaves(output)
        first = {source: place for place, source in reversed(list(enumerate(self._sources)))}
        return tuple(leaves[first[number]] for number in range(len(self.outputs)))

    def output(self, results: Sequence[torch.Tensor]) -> Any:
        """The output, of the tensors that a runtime returned.

        Raises:
            InputError: there are more or fewer of them than the model returns.
        """
        if len(results) != len(self.outputs):
            raise InputError(
                f"the runtime returned {len(results)} tensors, where the model returns {len(self.outputs)}"
            )
        if self._is_single:
            return results[0]
        leaves = [
            constant if source is None else results[source]
            for source, constant in zip(self._sources, self._results, strict=True)
        ]
        return pytree.tree_unflatten(leaves, self._output_spec)


class FlatModel(nn.Module):
    """A model with flat tensors in and flat tensors out."""

    def __init__(self, model: nn.Module, form: CallForm) -> None:
        super().__init__()
        self.model = model
        self._form = form

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Call the model."""
        args, kwargs = self._form.arguments(tensors)
        return self._form.distinct(self.model(*args, **kwargs))


class RuntimeModel(nn.Module):
    """Takes arguments as the model took them, and returns outputs of the structure that the model returned.

    The runtime is opened at the first call: the number of threads that holds then is the one it keeps.
    """

    def __init__(self, form: CallForm, shapes: Shapes, opened: Callable[[], tuple[Run, Any]]) -> None:
        super().__init__()
        self._form = form
        self._shapes = shapes
        self._opened = opened
        self._run: Run | None = None
        self.runtime: Any = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Let the runtime compute."""
        if self._run is None:
            self._run, self.runtime = self._opened()
        tensors = self._shapes.laid_out(list(self._form.flat(args, kwargs)))
        return self._form.output(self._run(tensors))


def runtime_of(model: nn.Module) -> Any:
    """What runs a model, where a runtime does and has been opened; `None` otherwise."""
    return model.runtime if isinstance(model, RuntimeModel) else None
