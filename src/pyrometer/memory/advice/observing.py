"""What steps do with what they allocate: which operator reads what, and when something is used for the last time."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from pyrometer.memory.prediction.workspaces import workspace_bytes
from pyrometer.memory.private.dispatch import storage_key, storages
from pyrometer.memory.recording.allocation import AllocationLog
from pyrometer.memory.recording.recorder import AllocationRecorder
from pyrometer.memory.recording.steps import STEPS, know_parts
from pyrometer.quantity import Bytes
from pyrometer.workload.failure import user_code
from pyrometer.workload.whereabouts.autograd_sequence import current_node
from pyrometer.workload.workload import Session, Workload


class Use(NamedTuple):
    """One operator that ran; allocations are named by their numbers in the log."""

    event: int
    """How many events there had been when it was done."""
    operator: str
    arguments: tuple[int, ...]
    results: tuple[int, ...]
    shown_bytes: Bytes
    """Of all results together, by their shapes; their storages may be larger."""
    backward: bool
    """It ran in a backward pass."""


@dataclass
class Observed:
    """Steps as they were recorded.

    Attributes:
        log: what was allocated and freed.
        uses: every operator, in order.
        returned: numbers of what the steps returned.
    """

    log: AllocationLog
    uses: list[Use] = field(default_factory=list)
    returned: set[int] = field(default_factory=set)

    @property
    def backward(self) -> bool:
        """Whether there was a backward pass."""
        return any(use.backward for use in self.uses)

    def last_uses(self) -> dict[int, int]:
        """By allocation, the event after which nothing read or wrote it any more."""
        return {index: use.event for use in self.uses for index in (*use.arguments, *use.results)}

    def gaps(self) -> dict[int, tuple[int, int]]:
        """By what autograd saved: its last use in the forward pass, and the first in the backward pass."""
        last: dict[int, int] = {}
        first: dict[int, int] = {}
        for use in self.uses:
            for index in (*use.arguments, *use.results):
                allocation = self.log.allocations[index]
                if (
                    allocation.saved
                    and not allocation.preexisting
                    and allocation.category is None
                    and index not in first
                ):
                    (first if use.backward else last)[index] = use.event
        return {index: (last[index], first[index] - 1) for index in first if index in last}

    def alive_at_peak(self) -> list[int]:
        """The allocations that hold the peak."""
        event = self.log.peak_event
        return [
            index for index, allocation in enumerate(self.log.allocations) if allocation.alive_after(event)
        ]


class UseRecorder(AllocationRecorder):
    """Records allocations, and which operators use them; with what operators take for themselves, as far as that is known.

    Args:
        device: whose memory is counted.
        saved: follow what autograd saves.
        look: called after each operator with how many have run before.
    """

    def __init__(
        self, device: torch.device, *, saved: bool = True, look: Callable[[int], None] | None = None
    ) -> None:
        super().__init__(device, saved=saved, workspace=workspace_bytes)
        self.observed = Observed(self.log)
        self._look = look

    def saw(self, results: Any, arguments: Any, operator: Any) -> None:
        """An operator ran."""
        super().saw(results, arguments, operator)
        tensors = [result for result in results if isinstance(result, torch.Tensor)]
        backward = current_node() is not None
        uses = self.observed.uses
        uses.append(
            Use(
                len(self.log.events),
                str(operator),
                self.numbers(arguments),
                self.numbers(tensors),
                sum(tensor.numel() * tensor.element_size() for tensor in tensors),
                backward,
            )
        )
        if self._look is not None:
            self._look(len(uses) - 1)

    def numbers(self, tensors: Sequence[Any]) -> tuple[int, ...]:
        """Numbers of the allocations behind tensors, each once."""
        found = [
            self._known.get(storage_key(storage))
            for tensor in tensors
            if isinstance(tensor, torch.Tensor) and tensor.device.type == self.device
            for storage, _ in storages(tensor)
        ]
        return tuple(dict.fromkeys(index for index in found if index is not None))


def observe(
    work: Workload, *, steps: int = STEPS, look: Callable[[int, UseRecorder], None] | None = None
) -> Observed:
    """Run a workload's first steps, and record what they allocate and use.

    Args:
        work: what to run; its state is restored.
        steps: how many.
        look: called after each operator, with how many ran before it.

    Raises:
        InputError: the workload cannot be prepared.
        UserProgramError: a step raised.
    """
    with work.open() as session:
        session.activate()
        return _observed(session, steps, look)


def _observed(session: Session, steps: int, look: Callable[[int, UseRecorder], None] | None) -> Observed:
    gc.collect()
    recorder: UseRecorder
    recorder = UseRecorder(
        session.device, look=None if look is None else lambda number: look(number, recorder)
    )
    know_parts(recorder, session)
    session.inputs_seen = recorder.register_inputs
    try:
        with recorder, user_code("the step"):
            for step in range(steps):
                output = session.phased_step(lambda phase, step=step: recorder.end_phase(phase, step=step))  # type: ignore[misc]
                recorder.end_phase("rest", step=step)
                recorder.observed.returned.update(recorder.numbers(pytree.tree_leaves(output)))
                del output
    finally:
        session.inputs_seen = None
    return recorder.observed
