"""A forward pass alone: of an inference with all that a backward pass would need, or of a training without any of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from pyrometer.memory.prediction.inputs import DoubledInputs
from pyrometer.workload.inference import Inference, devices_of
from pyrometer.workload.inputs import as_arguments
from pyrometer.workload.losses import batch_loss
from pyrometer.workload.state import inference_mode
from pyrometer.workload.surroundings import Surroundings
from pyrometer.workload.training import Training
from pyrometer.workload.workload import Mark, Session


class Forward(Session):
    """The forward pass of a workload in the other grad mode."""

    def __init__(
        self,
        work: Training | Inference,
        model: nn.Module,
        inputs: DoubledInputs,
        surroundings: Surroundings,
        loss: Callable[..., torch.Tensor] | None = None,
    ) -> None:
        super().__init__(next(iter(devices_of(model)), torch.device("cpu")), surroundings)
        self.model = model
        self._inputs = inputs
        self._loss = batch_loss(loss) if isinstance(work, Training) else None
        self._autocast = work.config.autocast_context(self.device)

    def prepare(self) -> Any:
        """The inputs of the next step."""
        return self._inputs.next()

    def step(self, prepared: Any) -> Any:
        """One forward pass."""
        mode = torch.enable_grad() if self._loss is None else inference_mode(True)
        with mode, self._autocast or contextlib.nullcontext():
            if self._loss is not None:
                return self._loss(self.model, prepared)
            arguments = as_arguments(prepared)
            return self.model(*arguments.args, **arguments.kwargs)

    def phased_step(self, mark: Mark) -> Any:
        """The inputs, then the forward pass."""
        prepared = self.prepare()
        mark("data")
        if self.inputs_seen is not None:
            self.inputs_seen(prepared)
        output = self.step(prepared)
        mark("forward")
        return output

    @property
    def units_per_step(self) -> float:
        """One: nobody counts."""
        return 1.0
