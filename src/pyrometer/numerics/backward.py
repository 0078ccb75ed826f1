"""Following the gradients of a session, and the scale of its GradScaler."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from pyrometer.numerics.gradients import StepGradients, read_gradients, summarised
from pyrometer.numerics.modules import ModuleWatch
from pyrometer.numerics.nonfinite import StepTensors
from pyrometer.numerics.report import Gradients, NonFinite, Scaling


class GradientWatch:
    """Reads the gradients of each step before the optimizer uses them.

    Args:
        modules: names parameters.
        tensors: of the step that runs.
        scaler: that gradients are scaled by, if any.
    """

    def __init__(
        self, modules: ModuleWatch, tensors: StepTensors, scaler: torch.amp.GradScaler | None
    ) -> None:
        self.parameters: dict[str, torch.Tensor] = {}
        self.steps: list[StepGradients] = []
        self._modules = modules
        self._tensors = tensors
        self._scaler = scaler if scaler is not None and scaler.is_enabled() else None
        self._scales: list[float] = []

    def train(self, tensors: Iterable[torch.Tensor]) -> None:
        """Look at the gradients of these tensors, too."""
        known = {id(tensor) for tensor in self.parameters.values()}
        for tensor in tensors:
            if id(tensor) not in known:
                known.add(id(tensor))
                name = self._modules.parameters.get(id(tensor), f"parameter {len(self.parameters)}")
                self.parameters[name] = tensor

    def begin_step(self) -> None:
        """A step begins."""
        self.steps.append(StepGradients({}))
        if self._scaler is not None:
            self._scales.append(float(self._scaler.get_scale()))

    def end_step(self) -> None:
        """A step has ended: a scale that is smaller than before tells that the scaler skipped it."""
        if self._scaler is not None:
            self.steps[-1].skipped = float(self._scaler.get_scale()) < self._scales[-1]

    def read(self) -> None:
        """Read the gradients as they are now; of several backward passes in a step the last one counts."""
        step = read_gradients(self.parameters, self._scales[-1] if self._scaler is not None else 1.0)
        if step.bad:
            step.origin = self._origin_of(step.bad[-1])
        self.steps[-1] = step

    def gradients(self) -> Gradients | None:
        """All steps; `None` where no gradient was seen."""
        return summarised(self.steps, self.parameters, self._modules)

    def scaling(self) -> Scaling | None:
        """The scale over all steps; `None` without a scaler."""
        if self._scaler is None:
            return None
        return Scaling(
            scales=self._scales,
            final_scale=float(self._scaler.get_scale()),
            skipped=[number for number, step in enumerate(self.steps) if step.skipped],
        )

    def _origin_of(self, name: str) -> NonFinite | None:
        self._tensors.read()
        index = self._tensors.find(self.parameters[name].grad)
        if index is None or not self._tensors.made[index].state:
            return None
        return self._tensors.told(index, step=len(self.steps) - 1, seen_in=None, in_result=False)
