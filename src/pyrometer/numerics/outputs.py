"""What modules and steps give: their distributions, and the first value that is not finite."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from pyrometer.numerics.nonfinite import NAN, StepTensors
from pyrometer.numerics.report import ModuleOutput, NonFinite, StepOutput
from pyrometer.numerics.statistics import value_statistics
from pyrometer.numerics.tensors import floating_tensors

MOST_MODULES = 200


class OutputWatch:
    """Looks at the outputs of modules as they end, and at the result of each step.

    Args:
        tensors: of the step that runs.
    """

    def __init__(self, tensors: StepTensors) -> None:
        self.first: NonFinite | None = None
        self.num_bad_steps = 0
        self.steps: list[StepOutput] = []
        self.modules: dict[str, ModuleOutput] = {}
        self._tensors = tensors
        self._given: list[tuple[str, int]] = []  # module and entry of its output, in order
        self._kept: set[str] = set()

    def begin_step(self) -> None:
        """A step begins."""
        self._given.clear()
        self._kept.clear()

    def gave(self, path: str, module: nn.Module, output: Any) -> None:
        """A module's forward has ended."""
        tensors = floating_tensors(output)
        found = (self._tensors.find(tensor) for tensor in tensors)
        self._given += [(path, index) for index in found if index is not None]
        is_leaf = next(module.children(), None) is None
        is_known = path in self.modules
        if tensors and is_leaf and path not in self._kept and (is_known or len(self.modules) < MOST_MODULES):
            self._kept.add(path)  # of a module that runs many times in a step, the first call counts
            self._keep(path, module, tensors)

    def end_step(self, result: Any) -> None:
        """A step has ended, and every tensor of it was read."""
        tensors = floating_tensors(result)
        with torch.no_grad():
            self.steps.append(StepOutput(step=len(self.steps), values=value_statistics(tensors)))
        results = [index for tensor in tensors if (index := self._tensors.find(tensor)) is not None]
        bad = [index for index in results if self._tensors.is_bad(index)]
        self.num_bad_steps += bool(bad)
        if self.first is None:
            self.first = self._first(bad)

    def _first(self, bad: list[int]) -> NonFinite | None:
        # What is infinite within and finite in the end, such as 1 / exp(x), does no harm.
        is_wanted = self._tensors.is_bad if bad else self._is_nan
        seen_in, index = next(
            ((path, index) for path, index in self._given if is_wanted(index)),
            (None, bad[0] if bad else None),
        )
        if index is None:
            return None
        return self._tensors.told(index, step=len(self.steps) - 1, seen_in=seen_in, in_result=bool(bad))

    def _is_nan(self, index: int) -> bool:
        return self._tensors.made[index].state == NAN

    def _keep(self, path: str, module: nn.Module, tensors: list[torch.Tensor]) -> None:
        known = self.modules.get(path)
        with torch.no_grad():
            values = value_statistics(tensors)
        self.modules[path] = ModuleOutput(
            module=path,
            type_name=type(module).__name__,
            dtype=str(tensors[0].dtype).removeprefix("torch."),
            first=known.first if known is not None and self.steps else values,
            last=values,
        )
