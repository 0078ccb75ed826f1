"""The modules and optimizers that a step uses, wherever the program holds them, and their state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_pre_hook

from pyrometer.workload.state import preserved_module, preserved_optimizer


@contextlib.contextmanager
def _preserved_gradients(parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Leave the gradients where they are, and hang them back as they were."""
    kept = [(each, each.grad, None if each.grad is None else each.grad.clone()) for each in parameters]
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, gradient, value in kept:
                parameter.grad = gradient
                if gradient is not None and value is not None:
                    gradient.copy_(value)


class UsedState:
    """What training without a place would spoil: with an old gradient in each step, parameters grow without an end."""

    def __init__(self) -> None:
        self._models: list[nn.Module] = []
        self._optimizers: list[torch.optim.Optimizer] = []
        self._parts: set[int] = set()

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Note the modules that are called and the optimizers that step within."""
        handles = [
            register_module_forward_pre_hook(self._note_module),
            register_optimizer_step_pre_hook(self._note_optimizer),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    @contextlib.contextmanager
    def preserved(self) -> Iterator[None]:
        """Restore what was noted; meanwhile it takes memory twice."""
        with contextlib.ExitStack() as stack:
            parameters = [each for model in self._models for each in model.parameters()]
            stack.enter_context(_preserved_gradients(parameters))
            for model in self._models:
                stack.enter_context(preserved_module(model, parameters=True))
            for optimizer in self._optimizers:
                stack.enter_context(preserved_optimizer(optimizer))
            yield

    def _note_module(self, module: nn.Module, _args: Any) -> None:
        if id(module) not in self._parts:
            self._models.append(module)
            self._parts.update(map(id, module.modules()))

    def _note_optimizer(self, optimizer: torch.optim.Optimizer, _args: Any, _named: Any) -> None:
        if not any(optimizer is known for known in self._optimizers):
            self._optimizers.append(optimizer)
