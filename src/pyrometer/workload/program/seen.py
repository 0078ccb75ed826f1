"""What one step did: modules that were called, who read whose output, functional calls, grad mode and autocast."""

from __future__ import annotations

import re
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from pyrometer.workload.program.strides import StridedPlace, strided_operands, strided_place

GradMode = Literal["grad", "no_grad", "inference_mode"]

DROPOUTS = {
    "dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "alpha_dropout_",
    "feature_alpha_dropout", "feature_alpha_dropout_", "feature_dropout", "feature_dropout_",
}  # fmt: skip

NO_CALLS = re.compile(r"__(get|set|delete)__|set_grad_enabled|record_function.*")
"""Reading a property such as shape, and what autograd and the profiler do: no calls that the user wrote."""


@dataclass
class Given:
    """One module's output, and which modules read it; the tensor itself is not kept alive."""

    by: nn.Module
    tensor: weakref.ref[torch.Tensor]
    readers: set[int] = field(default_factory=set)


@dataclass
class SeenStep:
    """The account of one step.

    Attributes:
        complete: the step ran to its end.
        roots: modules that were called while no other was running.
        module_calls: by `id` of the module.
        calls: functional calls by name, those within torch's own functions apart.
        active_dropouts: functional dropouts that set elements to zero.
        strided: operands that were read across their memory.
    """

    complete: bool = False
    grad_mode: GradMode | None = None
    autocast_dtype: str | None = None
    roots: list[nn.Module] = field(default_factory=list)
    module_calls: Counter[int] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    active_dropouts: int = 0
    strided: Counter[StridedPlace] = field(default_factory=Counter)
    names: dict[int, str] = field(default_factory=dict)
    fed: dict[int, list[Given | None]] = field(default_factory=dict)

    def path_before(self, part: nn.Module) -> str | None:
        """The module whose output was this one's input in each of its calls, where nothing else read that."""
        inputs = self.fed.get(id(part), [])
        if not self.complete or not inputs:
            return None
        givers = {id(given.by) if given and given.readers == {id(part)} else None for given in inputs}
        giver = givers.pop()
        return self.names.get(giver) if giver is not None and not givers else None


@contextmanager
def watched(model: nn.Module | None, device: torch.device) -> Iterator[SeenStep]:
    """Watch what runs within; hooks and the mode are gone at the end, also on exceptions."""
    seen = SeenStep()
    if model is not None:
        seen.names = {id(part): path for path, part in model.named_modules()}
    watcher = _Watcher(seen, device)
    handles = [
        register_module_forward_pre_hook(watcher.before),
        register_module_forward_hook(watcher.after, always_call=True),
    ]
    try:
        with watcher:
            yield seen
    finally:
        for handle in handles:
            handle.remove()


class _Watcher(TorchFunctionMode):
    """Hooks around every module, and a mode around every function of torch."""

    def __init__(self, seen: SeenStep, device: torch.device) -> None:
        super().__init__()
        self._seen = seen
        self._device = device.type
        self._running: list[nn.Module] = []
        self._given: dict[int, Given] = {}

    def before(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        seen = self._seen
        if not seen.roots:
            seen.grad_mode = current_grad_mode()
        if not self._running and not any(module is root for root in seen.roots):
            seen.roots.append(module)
        self._note_modes()
        seen.module_calls[id(module)] += 1
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        seen.fed.setdefault(id(module), []).append(None if first is None else self._giver(first))
        self._running.append(module)

    def after(self, module: nn.Module, _args: tuple[Any, ...], output: Any) -> None:
        while self._running and self._running.pop() is not module:
            continue  # its hook was skipped by an exception that the model caught
        for tensor in _tensors(output):
            known = self._giver(tensor)
            if known is None and not self._has_parts(module):
                self._given[id(tensor)] = Given(module, weakref.ref(tensor))
            elif known is not None and not self._running:
                known.readers.add(0)  # the caller of the whole model

    def __torch_function__(
        self, func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if NO_CALLS.fullmatch(name):
            return func(*args, **kwargs)
        name = name.strip("_") or name
        operands = _tensors((args, kwargs))
        self._note(name, args, kwargs, operands)
        result = func(*args, **kwargs)
        for tensor in strided_operands(name, operands, result):
            self._seen.strided[strided_place(name, tensor)] += 1
        return result

    def _note(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], operands: list[torch.Tensor]
    ) -> None:
        self._note_modes()
        seen = self._seen
        seen.calls[name] += 1
        if name in DROPOUTS:
            seen.active_dropouts += _is_active(args, kwargs)
        elif name == "scaled_dot_product_attention":
            seen.active_dropouts += bool(args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0))
        reader = id(self._running[-1]) if self._running else 0
        for tensor in operands:
            given = self._giver(tensor)
            if given is not None:
                given.readers.add(reader)

    def _note_modes(self) -> None:
        seen = self._seen
        if seen.grad_mode is None:
            seen.grad_mode = current_grad_mode()
        if seen.autocast_dtype is None and torch.is_autocast_enabled(self._device):
            seen.autocast_dtype = str(torch.get_autocast_dtype(self._device)).removeprefix("torch.")

    def _giver(self, tensor: torch.Tensor) -> Given | None:
        given = self._given.get(id(tensor))
        return given if given is not None and given.tensor() is tensor else None

    @staticmethod
    def _has_parts(module: nn.Module) -> bool:
        return next(module.children(), None) is not None


def current_grad_mode() -> GradMode:
    """The mode of autograd in force."""
    if torch.is_inference_mode_enabled():
        return "inference_mode"
    return "grad" if torch.is_grad_enabled() else "no_grad"


def _is_active(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a dropout sets anything to zero: `(input, p=0.5, training=True)`; the low-level one says `train`."""
    rate = args[1] if len(args) > 1 else kwargs.get("p", 0.5)
    training = args[2] if len(args) > 2 else kwargs.get("training", kwargs.get("train", True))
    return bool(training) and rate > 0


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]
