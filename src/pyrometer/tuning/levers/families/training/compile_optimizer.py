"""`compile_optimizer`: the optimizer's step behind `torch.compile`."""

from __future__ import annotations

from typing import Any

import torch

from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.private import counting_inductor, missing_compiler
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.parts import tracked_step

_FUSED = "the optimizer is fused already, and a kernel of its own cannot be compiled"


@lever
class CompileOptimizer(Lever):
    """Put the optimizer's step behind `torch.compile`."""

    name = "compile_optimizer"
    title = "compile the optimizer's step"
    why = (
        "Inductor writes the update of many parameters as a few kernels, also for optimizers without a fused one. "
        "Compiling takes long where there are many parameters."
    )
    stage = "compile"
    place = "executor"
    kinds = frozenset({"training"})
    excludes = frozenset({"optimizer"})
    prior = 0.9
    minutes = 1.0
    pasted = ("step = torch.compile(optimizer.step)  # and step() in place of optimizer.step()",)

    def refuses(self, subject: Subject) -> str | None:
        """What has a kernel of its own, a step of its own, or a learning rate that would be compiled in again and again."""
        parts = subject.training.parts
        optimizer = parts.optimizer
        if issubclass(type(optimizer), _CompiledStep):
            return "the optimizer's step is compiled already"
        if all(group.get("fused") for group in optimizer.param_groups):
            return _FUSED
        own = vars(optimizer).get("step")
        if own is not None and not hasattr(own, "_wrapped_by_lr_sched"):
            return "the optimizer's step was replaced on the instance"
        rates = [group.get("lr") for group in optimizer.param_groups]
        if parts.scheduler is not None and not all(isinstance(rate, torch.Tensor) for rate in rates):
            return "each learning rate of the scheduler would be compiled anew: make it a tensor, lr=torch.tensor(1e-3)"
        return missing_compiler(subject.device)

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Give the optimizer a class of its own, so that copies of it are compiled, too."""
        optimizer = subject.training.parts.optimizer
        replaced = "step" in vars(optimizer)
        optimizer.__class__ = _compiled_class(type(optimizer))
        if replaced:  # a scheduler's wrapper holds the old step
            optimizer.step = tracked_step(optimizer)  # type: ignore[method-assign]

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """Graphs of the step, and of nothing else, reached the backend."""
        kind: Any = type(subject.training.parts.optimizer)
        if not issubclass(kind, _CompiledStep):
            return "the optimizer's step is not compiled"
        return None if kind.graphs else "no graph of the optimizer's step was compiled"


class _CompiledStep:
    """Marks a class of optimizers whose step is compiled; `graphs` are the numbers of operators of each graph."""

    graphs: list[int]


def _compiled_class(kind: Any) -> Any:
    """A class of optimizers whose step is compiled; hooks run outside of it, as they did."""
    graphs: list[int] = []
    inner = getattr(kind.step, "__wrapped__", kind.step)  # without the hooks that torch lays around
    compiled: Any = torch.compile(inner, backend=counting_inductor(graphs))

    def step(self: Any, closure: Any = None) -> Any:
        return compiled(self, closure) if closure is not None else compiled(self)

    hooked: Any = kind.profile_hook_step(step)
    hooked.hooked = True
    return type(f"Compiled{kind.__name__}", (_CompiledStep, kind), {"step": hooked, "graphs": graphs})
