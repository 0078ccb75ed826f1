"""`autocast_bf16` and `autocast_fp16`: matrix products and convolutions in 16 bits, the rest as it is."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import torch

from pyrometer.tuning.levers.lever import Lever, Parameters, lever
from pyrometer.tuning.levers.subject import Subject

_FIRST_SCALE = 2.0**12
"""Of a GradScaler: with torch's own 2**16 the first steps of most models overflow and are left out."""


class _Autocast(Lever):
    stage = "compute"
    place = "precision"
    fix_class = "tolerance"
    kinds = frozenset({"inference", "training"})
    excludes = frozenset({"precision"})
    executors = frozenset({"eager", "compile", "compile_regional"})
    pays_under = frozenset({"compile"})
    dtype: ClassVar[torch.dtype]

    def refuses(self, subject: Subject) -> str | None:
        """What is in another dtype than float32 was written so."""
        floating: Any = {p.dtype for p in subject.model.parameters() if p.is_floating_point()}
        if not floating:
            return "the model has no floating-point parameters"
        if floating != {torch.float32}:
            named = ", ".join(sorted(str(dtype) for dtype in floating))
            return f"the model is in {named} already"
        return "autocast is on already" if subject.work.config.autocast else None

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Enter `torch.autocast` around each call."""
        name = str(self.dtype).removeprefix("torch.")
        if subject.is_training:
            subject.work = subject.work.variant(autocast=name)
        else:
            subject.contexts.append(functools.partial(torch.autocast, subject.device.type, dtype=self.dtype))
            subject.outputs_changed.append(functools.partial(_restored, self.dtype))

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """A product under these contexts has the dtype."""
        if subject.is_training:
            return None if subject.work.config.autocast else "the workload has no autocast"
        with torch.autocast(subject.device.type, dtype=self.dtype):
            product = torch.ones(2, 2, device=subject.device) @ torch.ones(2, 2, device=subject.device)
        return None if product.dtype == self.dtype else f"products stay in {product.dtype}"

    def lines(self, parameters: Parameters) -> list[str]:
        """The context."""
        return [f"# around the forward pass: with torch.autocast(device_type, dtype={self.dtype}):"]


def _restored(dtype: torch.dtype, tensor: torch.Tensor) -> torch.Tensor:
    """Outputs have the dtype that the caller had before."""
    return tensor.float() if tensor.dtype == dtype else tensor


@lever
class AutocastBf16(_Autocast):
    """Autocast to bfloat16."""

    name = "autocast_bf16"
    title = "run matrix products and convolutions in bfloat16"
    why = (
        "Half the bytes, and matrix units where the processor has them (AMX, tensor cores). Without them each product is "
        "emulated: 2 to 4 times slower."
    )
    dtype = torch.bfloat16
    prior = 0.8


@lever
class AutocastFp16(_Autocast):
    """Autocast to float16; on a GPU alone, since CPUs gain nothing over bfloat16 and lose range."""

    name = "autocast_fp16"
    title = "run matrix products and convolutions in float16"
    why = "Tensor cores since Volta; more digits than bfloat16, and less range: training needs a GradScaler."
    dtype = torch.float16
    prior = 0.8

    def refuses(self, subject: Subject) -> str | None:
        """On CPUs bfloat16 is the format with hardware."""
        if subject.device.type == "cpu":
            return "on a CPU bfloat16 is as fast, with more range"
        return super().refuses(subject)

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """With a scaler around the loss of a training."""
        super().apply(subject, parameters)
        if subject.is_training and subject.training.parts.scaler is None:
            scaler = torch.amp.GradScaler(subject.device.type, init_scale=_FIRST_SCALE)
            subject.training.parts = subject.training.parts._replace(scaler=scaler)

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """The losses of a training are scaled, too."""
        if subject.is_training and subject.training.parts.scaler is None:
            return "the training has no GradScaler"
        return super().not_applied(subject, parameters)

    def lines(self, parameters: Parameters) -> list[str]:
        """The context, and the scaler."""
        return [
            *super().lines(parameters),
            f"# in training with scaler = torch.amp.GradScaler(init_scale={_FIRST_SCALE:g})",
        ]
