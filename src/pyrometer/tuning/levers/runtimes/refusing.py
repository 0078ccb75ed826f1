"""Where exporting is not tried."""

from __future__ import annotations

from collections.abc import Collection

import torch

from pyrometer.tuning.levers.subject import Subject
from pyrometer.workload.variant import is_compiled


def refuses_export(subject: Subject, dtypes: Collection[torch.dtype] | None) -> str | None:
    """Why a model is not exported for another runtime.

    Args:
        subject: whose model would be exported.
        dtypes: of parameters that the runtime computes with on a CPU; `None` where it takes whatever torch takes.
    """
    if any(is_compiled(module) for module in subject.model.modules()):
        return "the model comes compiled"
    if dtypes is None:
        return None
    if subject.device.type != "cpu":
        return f"the work is on {subject.device.type}; this runtime is used on CPUs only"
    tensors = [*subject.model.parameters(), *subject.example().tensors()]
    others = {tensor.dtype for tensor in tensors if tensor.is_floating_point()} - set(dtypes)
    if others:
        return f"the model computes in {min(map(str, others))}, which this runtime does not on a CPU"
    return None
