"""Taking and restoring the state that running a workload may change.

Everything here is a context manager that puts back what it found, also when the body raises. Objects keep their
identity: a parameter, a buffer or a momentum that existed before is the same tensor with the same values afterwards.

This module is the only one of the room that leans on torch's internals: `_InferenceMode`, where
`torch.inference_mode` costs 1 to 2 µs per step and is used when the other is missing.
"""

from __future__ import annotations

import contextlib
import copy
import os
import random
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

from pyrometer.quantity import Bytes

inference_mode: Callable[[bool], contextlib.AbstractContextManager[Any]] = getattr(
    torch._C,  # noqa: SLF001 - see above
    "_InferenceMode",
    torch.inference_mode,
)


class Stateful(Protocol):
    """Whatever has a state dict, such as a scheduler."""

    def state_dict(self) -> dict[str, Any]:
        """Its state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Take a state on."""


@contextlib.contextmanager
def preserved_rng() -> Iterator[None]:
    """Restore the random state of Python, NumPy and torch (CPU and every CUDA device, once CUDA is in use)."""
    python_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002 - the legacy global state is exactly what must be kept
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)  # noqa: NPY002


@contextlib.contextmanager
def preserved_process() -> Iterator[None]:
    """Restore the working directory and `sys.argv`."""
    directory, argv = os.getcwd(), list(sys.argv)  # noqa: PTH109
    try:
        yield
    finally:
        os.chdir(directory)
        sys.argv[:] = argv


@contextlib.contextmanager
def preserved_module(module: nn.Module, *, parameters: bool) -> Iterator[None]:
    """Restore a module's modes, attributes and buffers, and with `parameters` also its parameters.

    Attributes are restored one level deep: entries of a list or dict come back, objects inside are not copied. The
    copies of tensors live on the tensors' own device; `tensor_bytes(module_tensors(…))` says what they cost.
    """
    modes = [(part, part.training) for part in module.modules()]
    kept = kept_module(module, parameters=parameters, sparing=False)
    try:
        yield
    finally:
        kept.restore()
        for part, training in modes:
            part.training = training


@contextlib.contextmanager
def preserved_optimizer(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Restore an optimizer's state, its groups with their settings, and the values of all its tensors.

    Not by `load_state_dict`: that casts state to the parameters' dtype, so it does not bring back a float32 state of
    bfloat16 parameters.
    """
    groups, states = optimizer.param_groups, optimizer.state
    containers = [
        vars(optimizer),
        groups,
        states,
        *groups,
        *(group["params"] for group in groups),
        *states.values(),
    ]
    with _preserved(containers, optimizer_tensors(optimizer)):
        yield


@contextlib.contextmanager
def preserved_scaler(scaler: torch.amp.GradScaler) -> Iterator[None]:
    """Restore a gradient scaler, also one that has not scaled anything yet."""
    attributes = vars(scaler)
    inner = [value for value in attributes.values() if _is_container(value)]
    tensors = [value for value in attributes.values() if isinstance(value, torch.Tensor)]
    with _preserved([attributes, *inner], tensors):
        yield


@contextlib.contextmanager
def preserved_state_dict(owner: Stateful) -> Iterator[None]:
    """Restore a learning-rate scheduler through its state dict."""
    kept = copy.deepcopy(owner.state_dict())
    try:
        yield
    finally:
        owner.load_state_dict(kept)


@contextlib.contextmanager
def preserved_grads(tensors: Iterable[torch.Tensor]) -> Iterator[None]:
    """Set the gradients aside, so that the body starts without any, and hang the very same ones back at the end."""
    kept = [(tensor, tensor.grad) for tensor in tensors]
    for tensor, _ in kept:
        tensor.grad = None
    try:
        yield
    finally:
        for tensor, grad in kept:
            tensor.grad = grad


def module_tensors(module: nn.Module, *, parameters: bool) -> list[torch.Tensor]:
    """The buffers of a module and, if asked for, its parameters; each once."""
    return [*module.buffers(), *(module.parameters() if parameters else ())]


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """The tensors that an optimizer holds beside the parameters: its state, and settings that are tensors."""
    settings = [
        {name: value for name, value in g.items() if name != "params"} for g in optimizer.param_groups
    ]
    leaves = pytree.tree_leaves([list(optimizer.state.values()), settings])
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def tensor_bytes(tensors: Iterable[torch.Tensor]) -> Bytes:
    """Memory that copies of these tensors take.

    >>> tensor_bytes([torch.zeros(3), torch.zeros(2, dtype=torch.float64)])
    28
    """
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@dataclass(frozen=True)
class Kept:
    """What dicts and lists held and tensors contained, to be put back.

    Attributes:
        sparing: write only tensors that changed, so that those which autograd holds on to stay valid.
    """

    entries: list[tuple[Any, Any]]
    values: list[tuple[torch.Tensor, torch.Tensor]]
    sparing: bool = False

    @classmethod
    def of(cls, containers: Iterable[Any], tensors: Iterable[torch.Tensor], *, sparing: bool = False) -> Kept:
        """Broadcast views cannot be written to, so they need not be kept."""
        values = [(tensor, tensor.detach().clone()) for tensor in tensors if not _is_broadcast(tensor)]
        return cls([(container, copy.copy(container)) for container in containers], values, sparing)

    def restore(self) -> None:
        """Put it back."""
        # In inference mode also inference tensors may be written to.
        with inference_mode(True):
            for tensor, value in self.values:
                # Not by the version of the tensor: batch norm writes its statistics without counting it.
                if not self.sparing or not torch.equal(tensor, value):
                    tensor.copy_(value)
        for container, entries in self.entries:
            if not _holds_the_same(container, entries):
                container.clear()
                (container.extend if isinstance(container, list) else container.update)(entries)


def kept_module(module: object, *, parameters: bool = False, sparing: bool = True) -> Kept:
    """The attributes and buffers of a module, and with `parameters` those; of a function there is nothing to keep."""
    if not isinstance(module, nn.Module):
        return Kept([], [])
    attributes = [vars(part) for part in module.modules()]
    inner = [value for owner in attributes for value in owner.values() if _is_container(value)]
    tensors = module_tensors(module, parameters=parameters)
    return Kept.of([*attributes, *inner], tensors, sparing=sparing)


@contextlib.contextmanager
def _preserved(containers: Iterable[Any], tensors: Iterable[torch.Tensor]) -> Iterator[None]:
    kept = Kept.of(containers, tensors)
    try:
        yield
    finally:
        kept.restore()


def _holds_the_same(container: Any, entries: Any) -> bool:
    if len(container) != len(entries):
        return False
    if isinstance(container, list):
        return all(now is kept for now, kept in zip(container, entries, strict=True))
    return all(key in container and container[key] is value for key, value in entries.items())


def _is_container(value: Any) -> bool:
    return type(value) in {dict, list, OrderedDict, defaultdict}


def _is_broadcast(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and any(
        stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape, strict=True)
    )
