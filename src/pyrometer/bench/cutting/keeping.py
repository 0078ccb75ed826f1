"""The modules and optimizers that a step uses, wherever the program holds them, and their state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_pre_hook

from pyrometer.workload.state import preserved_module, preserved_optimizer


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
