"""Items about memory."""

from __future__ import annotations

from pyrometer.rules.audit.applicable import needs_device, needs_inference, needs_training
from pyrometer.rules.audit.item import Item, proof_of, source_read
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Value

NO_GRADIENTS = ("torch.inference_mode", "torch.no_grad", "torch.set_grad_enabled")

MOST_UNKNOWN = 0.05
"""Of the peak, that may be unexplained."""


def _watched(case: Case) -> dict[str, Value] | None:
    leak = case.memory.leak if case.memory is not None else None
    if leak is None or leak.verdict not in {"stable", "allocator warm-up"}:
        return None
    return {"verdict": leak.verdict, "steps_watched": leak.num_steps}


def _grad_mode(case: Case) -> dict[str, Value] | None:
    """Where the program itself switches gradients off: whoever measures an inference does so anyway."""
    places: list[str] = [
        f"{module.path}:{call.lineno}" for module in case.modules for call in module.calls(*NO_GRADIENTS)
    ]
    return {"switched_off_at": places} if places else None


def _explained(case: Case) -> dict[str, Value] | None:
    """What the ledger cannot name is no fault of the program: then the item is not known."""
    memory = case.memory
    if memory is None or not memory.peak_bytes:
        return None
    share = memory.ledger_bytes.get("unknown", 0) / memory.peak_bytes
    return {"unknown_share": share} if share <= MOST_UNKNOWN else None


def _reserved(case: Case) -> dict[str, Value] | None:
    levels = case.memory.levels if case.memory is not None else None
    if levels is None or not levels.reserved_peak_bytes or levels.allocated_peak_bytes is None:
        return None
    return {"allocated_over_reserved": levels.allocated_peak_bytes / levels.reserved_peak_bytes}


MEMORY = (
    Item(
        code="A201",
        title="Inference records no gradients",
        rules=("PYR201",),
        proof=_grad_mode,
        applies=needs_inference,
        needed="torch.inference_mode() or torch.no_grad() in the program's source",
    ),
    Item(
        code="A202",
        title="Nothing is kept from step to step that is not needed",
        rules=("PYR202", "PYR203", "PYR204", "PYR211", "PYR216"),
        proof=source_read,
        needed="the program's source",
    ),
    Item(
        code="A203",
        title="Live memory stays level over the steps",
        rules=("PYR217",),
        proof=_watched,
        needed="enough steps to tell a leak from warm-up",
    ),
    Item(
        code="A204",
        title="The peak is explained",
        proof=_explained,
        needed="a memory profile that names what is held at the peak",
    ),
    Item(
        code="A205",
        title="Buffers are allocated once, and not copied without need",
        rules=("PYR213", "PYR214", "PYR215"),
        family="memory",
        proof=proof_of("memory", peak_bytes=lambda memory: memory.peak_bytes),
        needed="a memory profile",
    ),
    Item(
        code="A206",
        title="The allocator is not fragmented, and left alone in loops",
        rules=("PYR205", "PYR206", "PYR207"),
        proof=_reserved,
        applies=needs_device,
        needed="allocated and reserved memory of a device",
    ),
    Item(
        code="A207",
        title="Gradients are released after the step",
        rules=("PYR212",),
        proof=source_read,
        applies=needs_training,
        needed="the program's source",
    ),
)
