"""The module that stands for a model which another runtime computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn

from pyrometer.tuning.levers.runtimes.form import CallForm
from pyrometer.tuning.levers.runtimes.shapes import Shapes

Run: TypeAlias = Callable[[list[torch.Tensor]], Sequence[torch.Tensor]]
"""Computes flat results of flat inputs."""


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
