"""`fused_optimizer` and `foreach_optimizer`: the update of all parameters in a few calls."""

from __future__ import annotations

import inspect
from typing import ClassVar

from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject


class _OptimizerKernel(Lever):
    stage = "compute"
    place = "settings"
    kinds = frozenset({"training"})
    excludes = frozenset({"optimizer"})
    argument: ClassVar[str]

    def refuses(self, subject: Subject) -> str | None:
        """The optimizer has to have the choice, and nobody may differentiate through it."""
        optimizer = subject.training.parts.optimizer
        if self.argument not in inspect.signature(type(optimizer)).parameters:
            return f"{type(optimizer).__name__} has no {self.argument} kernel"
        if all(group.get(self.argument) for group in optimizer.param_groups):
            return f"the optimizer is {self.argument} already"
        if any(group.get("differentiable") for group in optimizer.param_groups):
            return f"a differentiable optimizer cannot be {self.argument}"
        return None

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Set it in every group; its state stays."""
        optimizer = subject.training.parts.optimizer
        for group in [*optimizer.param_groups, optimizer.defaults]:
            group.update({"fused": False} if "fused" in group else {}, foreach=False)
            group[self.argument] = True

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """Each group asks for it."""
        groups = subject.training.parts.optimizer.param_groups
        if all(group.get(self.argument) for group in groups):
            return None
        return f"a group of parameters is not {self.argument}"

    def lines(self, parameters: Parameters) -> list[str]:
        """The argument."""
        return [f"# optimizer = torch.optim.AdamW(model.parameters(), ..., {self.argument}=True)"]


@lever
class FusedOptimizer(_OptimizerKernel):
    """Let the optimizer update all parameters in one kernel per group."""

    name = "fused_optimizer"
    title = "update all parameters in one fused kernel"
    why = "An optimizer in a loop over tensors launches a dozen operators for each; fused it reads and writes each tensor once."
    argument = "fused"
    prior = 0.85


@lever
class ForeachOptimizer(_OptimizerKernel):
    """Let the optimizer call each of its operators once for all parameters."""

    name = "foreach_optimizer"
    title = "call each operator of the update once for all parameters"
    why = (
        "A dozen calls per group in place of a dozen per parameter, for optimizers that have no fused kernel. It is the default "
        "on a GPU; it takes memory for one more copy of the parameters."
    )
    argument = "foreach"
    prior = 0.95
