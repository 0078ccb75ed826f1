"""`flush_denormals`: numbers next to zero are zero."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import torch

from pyrometer.tuning.levers.lever import Lever, Parameters, held, lever
from pyrometer.tuning.levers.subject import Subject


@lever
class FlushDenormals(Lever):
    """Let the processor take denormal numbers for zero."""

    name = "flush_denormals"
    title = "take denormal numbers for zero"
    why = (
        "A CPU computes with numbers below 1e-38 in microcode, up to a hundred times slower; decayed weights and long "
        "recurrences are full of them. It holds for the thread that sets it and those started after it."
    )
    stage = "device"
    place = "settings"
    fix_class = "tolerance"
    kinds = frozenset({"inference", "training"})
    prior = 0.99
    pasted = ("torch.set_flush_denormal(True)",)

    def refuses(self, subject: Subject) -> str | None:
        """Only where weights or inputs hold denormals."""
        if subject.device.type != "cpu":
            return f"the work is on {subject.device.type}"
        tensors = [p.detach() for p in subject.model.parameters()]
        if not subject.is_training:
            tensors += subject.example().tensors()
        if any(map(_holds_denormals, tensors)):
            return None
        return "neither parameters nor inputs hold denormal numbers"

    def apply(self, subject: Subject, parameters: Parameters) -> None:
        """Hold it for the process that runs the workload."""
        subject.settings.append(lambda: self.process_settings(parameters)[0])

    def not_applied(self, subject: Subject, parameters: Parameters) -> str | None:
        """A denormal number times one is zero."""
        return None if _flushes() else "denormal numbers are still computed"

    def process_settings(self, parameters: Parameters) -> list[AbstractContextManager[Any]]:
        """Hold it, and restore what was set."""
        return [held(_flush, True, _flushes())]


def _flush(on: bool) -> None:
    if not torch.set_flush_denormal(on):
        raise RuntimeError("this processor cannot flush denormal numbers")


def _flushes() -> bool:
    """Whether this thread takes them for zero; torch does not tell."""
    return float(torch.tensor([1e-40]) * 1.0) == 0.0


def _holds_denormals(tensor: torch.Tensor) -> bool:
    if tensor.dtype != torch.float32:
        return False
    smallest = torch.finfo(tensor.dtype).smallest_normal
    return bool(((tensor != 0) & (tensor.abs() < smallest)).any())
