"""Activations in the host's memory between the passes."""

from __future__ import annotations

from collections.abc import Iterator

from pyrometer.advice import Advice
from pyrometer.memory.advice.case import Case
from pyrometer.memory.advice.observing import Observed
from pyrometer.quantity import format_bytes, format_seconds

PCIE_BYTES_PER_S = 25e9
"""What a link of 16 lanes of PCIe 4.0 carries one way, about."""


def offloading(case: Case) -> Iterator[Advice]:
    """Move what autograd saves to page-locked host memory, on CUDA."""
    observed, lives = case.observed, case.lives
    if observed is None or lives is None or not case.profile.device.startswith("cuda"):
        return
    changed = lives.without(observed.gaps())
    saving = case.relived(changed)
    if saving is None:
        return
    moved = sum(lives[index].nbytes for index in changed) // max(_num_steps(observed), 1)
    yield Advice(
        slug="offload-saved-tensors",
        fix_class="exact",
        title="keep saved tensors in the host's memory",
        why=f"{case.where}, where {case.holds('activations')}, which nothing reads between the passes",
        sketch="with torch.autograd.graph.save_on_cpu(pin_memory=True):\n    loss = loss_fn(model(inputs), targets)\nloss.backward()",
        effect=f"the same gradients; {format_bytes(moved)} travel to the host and back in each step, about "
        f"{format_seconds(2 * moved / PCIE_BYTES_PER_S)} over PCIe 4.0, and need as much page-locked memory. Checkpointing is often "
        "cheaper",
        gain=saving.gain,
    )


def _num_steps(observed: Observed) -> int:
    return len({phase.step for phase in observed.log.phases})
