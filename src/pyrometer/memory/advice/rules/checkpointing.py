"""Computing activations again in the backward pass instead of keeping them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from torch import nn

from pyrometer.advice import Advice
from pyrometer.errors import InputError
from pyrometer.memory.advice.case import Case
from pyrometer.memory.prediction.blocks import every
from pyrometer.memory.prediction.predict import predict_memory
from pyrometer.quantity import Bytes, format_bytes

MOST_NAMED = 4


def checkpointing(case: Case) -> Iterator[Advice]:
    """Recompute the repeated blocks, or the model's parts where nothing is repeated."""
    work = case.training
    if work is None or _recomputes(case):
        return
    paths = recomputable(work.parts.model)
    if not paths:
        return
    saving = case.tried(
        "activation checkpointing", ("activations",), lambda: predict_memory(work, checkpoint=paths)
    )
    if saving is None:
        return
    size = f"{max(math.ceil(saving.peak_bytes / 2**20), 1)}MiB" if saving.peak_bytes is not None else "SIZE"
    yield Advice(
        slug="activation-checkpointing",
        fix_class="tolerance",
        lever="checkpointing",
        title="compute activations again instead of keeping them",
        why=f"{case.where}, where {case.holds('activations')}",
        sketch=f"pyrometer memory TARGET --plan {size}\n"
        f'# in Python: plan = pm.plan_checkpoints(work, budget="{size}")\n'
        "# by hand, in the model's forward:\n"
        "from torch.utils.checkpoint import checkpoint\n"
        f"x = checkpoint(block, x, use_reentrant=False)  # for each of {shown(paths)}",
        effect="the same gradients; the forward pass of what is checkpointed runs twice, up to a third more time per step. The "
        f"planner chooses the parts that are cheapest to run again{_down_to(saving.peak_bytes)}",
        gain=saving.gain,
    )


def recomputable(model: nn.Module) -> list[str]:
    """Paths of the parts that would be checkpointed by hand."""
    try:
        return every(model, "every")
    except InputError:
        return _children(model)


def _children(model: nn.Module) -> list[str]:
    """The direct parts that hold more than one layer."""
    return [name for name, part in model.named_children() if len(list(part.modules())) > 2]


def _recomputes(case: Case) -> bool:
    """Whether the program checkpoints already."""
    return case.observed is not None and any(
        allocation.recomputed for allocation in case.observed.log.allocations
    )


def _down_to(peak: Bytes | None) -> str:
    return "" if peak is None else f"; all of them together lead to {format_bytes(peak)}"


def shown(names: Sequence[str]) -> str:
    """Some of many names.

    >>> shown(["a", "b", "c", "d", "e"])
    'a, b, c, d and 1 more'
    """
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
