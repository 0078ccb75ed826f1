"""How a workload comes to be compiled: by its own author, or by us."""

from __future__ import annotations

import math
from typing import Any

from torch import nn

from pyrometer.workload.inference import Inference
from pyrometer.workload.inputs import is_shape_list
from pyrometer.workload.training import Training
from pyrometer.workload.variant import is_compiled
from pyrometer.workload.workload import Workload

MANY_INPUTS = 64


def compiled_candidates(work: Workload, mode: str | None) -> list[Workload]:
    """The work as it may be compiled, to be tried in turn until one compiles something.

    What its author compiles is taken as it is. From outside that is not always seen (a step may call a compiled function), so
    that work which shows nothing compiled is tried as it is written before it is put behind `torch.compile`.

    Raises:
        InputError: a mode is given, but the model is compiled in a way that cannot be undone from outside.
    """
    if mode is not None:
        return [work.compiled(mode)]
    if work.config.mode == "eager":
        return [work.compiled()]
    if work.config.mode is not None or shows_compiled(work):
        return [work]
    return [work, work.compiled()]


def shows_compiled(work: Workload) -> bool:
    """Whether the model, or a part of it, is behind `torch.compile`."""
    model = model_of(work)
    return model is not None and any(map(is_compiled, model.modules()))


def model_of(work: Workload) -> nn.Module | None:
    """The model that a workload runs, where it is known to run one."""
    found: Any = getattr(work, "model", getattr(getattr(work, "parts", None), "model", None))
    module = found if found is not None else getattr(work, "function", None)
    return module if isinstance(module, nn.Module) else None


def input_cycle(work: Workload) -> int:
    """After how many steps the inputs are the same again, where that is known and not for long; else 1."""
    if isinstance(work, Inference) and is_shape_list(work.inputs):
        return min(len(work.inputs), MANY_INPUTS)
    if isinstance(work, Training):
        try:
            steps = math.ceil(len(work.batches) / work.accumulate)  # type: ignore[arg-type]
        except TypeError:  # a stream has no length
            return 1
        return steps if 0 < steps <= MANY_INPUTS else 1
    return 1
