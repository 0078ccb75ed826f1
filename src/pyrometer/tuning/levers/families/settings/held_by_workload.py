"""`inference_mode` and `eval_mode`: what `Inference` does anyway, so that findings that advise them get an answer."""

from __future__ import annotations

import functools

import torch

from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.inference import Inference
from pyrometer.workload.state import inference_mode


@lever
class InferenceMode(Lever):
    """Run the forward pass without autograd."""

    name = "inference_mode"
    title = "run the forward pass without autograd"
    why = "No graph is recorded and nothing is kept for a backward pass. The baseline runs so: a program that does not gains it on top."
    stage = "basic"
    place = "settings"
    prior = 0.9
    pasted = ("# around the forward pass: with torch.inference_mode():",)

    def refuses(self, subject: Subject) -> str | None:
        """The workload does it."""
        if isinstance(subject.work, Inference):
            return "the baseline runs under torch.inference_mode already: use it in your program"
        return None

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Around each call."""
        subject.contexts.append(functools.partial(inference_mode, True))

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """What the model computes has no graph."""
        arguments = subject.example()
        with torch.enable_grad():
            output = subject.finished().model(*arguments.args, **arguments.kwargs)  # type: ignore[union-attr]
        return "outputs have a graph" if getattr(output, "requires_grad", False) else None


@lever
class EvalMode(Lever):
    """Switch dropout off, and let batch norm use its running statistics."""

    name = "eval_mode"
    title = "put the model in eval mode"
    why = "Dropout and statistics of batches cost time and give other results for each call. The baseline runs so already."
    stage = "basic"
    place = "structure"
    fix_class = "semantic"
    prior = 0.95
    pasted = ("model.eval()",)

    def refuses(self, subject: Subject) -> str | None:
        """The workload does it."""
        if any(module.training for module in subject.model.modules()):
            return None
        return "the baseline runs in eval mode already: call model.eval() in your program"

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Switch all modules."""
        subject.model.eval()

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """No module is in training mode."""
        left = sum(module.training for module in subject.model.modules())
        return f"{left} modules are in training mode" if left else None
