"""`fused_optimizer`: one kernel for the update of all parameters."""

from __future__ import annotations

import inspect

from pyrometer.tuning.levers.lever import Lever, Parameters
from pyrometer.tuning.levers.registry import lever
from pyrometer.tuning.levers.subject import Subject


@lever
class FusedOptimizer(Lever):
    """Let the optimizer update all parameters in one kernel per group."""

    name = "fused_optimizer"
    title = "update all parameters in one fused kernel"
    why = "An optimizer in a loop over tensors launches a dozen operators for each; fused it reads and writes each tensor once."
    stage = "compute"
    place = "settings"
    fix_class = "exact"
    kinds = frozenset({"training"})
    prior = 0.85

    def refuses(self, subject: Subject) -> str | None:
        """The optimizer has to have the choice, and its parameters must be floating-point."""
        optimizer = subject.training.parts.optimizer
        if "fused" not in inspect.signature(type(optimizer)).parameters:
            return f"{type(optimizer).__name__} has no fused kernel"
        if all(group.get("fused") for group in optimizer.param_groups):
            return "the optimizer is fused already"
        if any(group.get("differentiable") for group in optimizer.param_groups):
            return "a differentiable optimizer cannot be fused"
        return None

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Set it in every group; its state stays."""
        del parameters
        optimizer = subject.training.parts.optimizer
        for group in [*optimizer.param_groups, optimizer.defaults]:
            group["fused"], group["foreach"] = True, False

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """Each group asks for it."""
        del parameters
        groups = subject.training.parts.optimizer.param_groups
        return None if all(group.get("fused") for group in groups) else "a group of parameters is not fused"

    def lines(self, parameters: Parameters) -> list[str]:
        """The argument."""
        del parameters
        return ["# optimizer = torch.optim.AdamW(model.parameters(), ..., fused=True)"]
