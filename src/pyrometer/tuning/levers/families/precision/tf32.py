"""`tf32`: float32 products with ten bits of mantissa, on tensor cores."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from pyrometer.tuning.levers.lever import Lever, Parameters, held, lever
from pyrometer.tuning.levers.subject import Subject

_FIRST_WITH_TF32 = (8, 0)


@lever
class Tf32(Lever):
    """Let products of float32 matrices use TF32."""

    name = "tf32"
    title = "let products of float32 matrices use TF32"
    why = (
        "Tensor cores since Ampere multiply float32 with ten bits of mantissa, several times as fast. "
        "It holds for the whole process; convolutions use it by default."
    )
    stage = "compute"
    place = "settings"
    fix_class = "tolerance"
    kinds = frozenset({"inference", "training"})
    prior = 0.7
    pasted = ('torch.set_float32_matmul_precision("high")',)

    def refuses(self, subject: Subject) -> str | None:
        """It is of NVIDIA's GPUs since Ampere."""
        if subject.device.type != "cuda":
            return f"the work is on {subject.device.type}, and TF32 is of NVIDIA's GPUs"
        if torch.cuda.get_device_capability(subject.device) < _FIRST_WITH_TF32:
            return "this GPU has no TF32; Ampere was the first"
        return "TF32 is on already" if torch.get_float32_matmul_precision() != "highest" else None

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Hold it for the process that runs the workload."""
        subject.settings.append(lambda: self.process_settings(parameters)[0])

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """A product with the identity loses the twelfth bit."""
        if subject.device.type != "cuda":
            return f"the work is on {subject.device.type}"
        fine = torch.full((64, 64), 1 + 2.0**-12, device=subject.device)
        with torch.autocast("cuda", enabled=False):
            product = fine @ torch.eye(64, device=subject.device)
        return None if not torch.equal(product, fine) else "products keep all bits of float32"

    def process_settings(self, parameters: Parameters) -> list[AbstractContextManager[Any]]:
        """Hold it, and restore what was set."""
        return [held(torch.set_float32_matmul_precision, "high", torch.get_float32_matmul_precision())]
