"""`cast_bf16`: the whole model in bfloat16."""

from __future__ import annotations

import functools

import torch

from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject


@lever
class CastBf16(Lever):
    """Cast parameters, buffers and floating-point inputs to bfloat16, and outputs back."""

    name = "cast_bf16"
    title = "cast the model to bfloat16"
    why = (
        "Half the bytes of weights and activations, without the casts that autocast makes in each step. Norms and softmax "
        "lose digits, too, which the comparison of outputs shows."
    )
    stage = "compute"
    place = "precision"
    fix_class = "tolerance"
    excludes = frozenset({"precision"})
    executors = frozenset({"eager", "compile", "compile_regional", "aot_inductor", "cuda_graphs"})
    pays_under = frozenset({"compile"})
    prior = 0.7
    pasted = (
        "model = model.to(torch.bfloat16)",
        "inputs = [x.to(torch.bfloat16) if x.is_floating_point() else x for x in inputs]",
        "# what the model returns is in bfloat16, too: call .float() on it where that matters",
    )

    def refuses(self, subject: Subject) -> str | None:
        """Only float32 is cast."""
        dtypes = {p.dtype for p in subject.model.parameters() if p.is_floating_point()}
        return None if dtypes == {torch.float32} else "the model is not in float32 alone"

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Cast in place."""
        subject.model = subject.model.to(torch.bfloat16)
        subject.inputs_changed.append(functools.partial(_cast, torch.float32, torch.bfloat16))
        subject.outputs_changed.append(functools.partial(_cast, torch.bfloat16, torch.float32))

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """Each floating-point parameter is in bfloat16."""
        left = [p for p in subject.model.parameters() if p.is_floating_point() and p.dtype != torch.bfloat16]
        return f"{len(left)} parameters are not in bfloat16" if left else None


def _cast(old: torch.dtype, new: torch.dtype, tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(new) if tensor.dtype == old else tensor
