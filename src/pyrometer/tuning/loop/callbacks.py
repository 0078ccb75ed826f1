"""What a user may hear from the loop while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

from pyrometer.quantity import Seconds
from pyrometer.tuning.loop.checkpoints import CheckpointNote
from pyrometer.tuning.loop.record import Adjustment, LogPoint, TrainingRun


@dataclass(frozen=True)
class StepEnd:
    """One optimizer step that is done, as the host sees it.

    Attributes:
        step: how many there were so far.
        epoch: from 0.
        batch_losses: of the step's batches, on the device.
        step_s: how long it took the host.
        data_s: how long it waited for the loader in it.
    """

    step: int
    epoch: int
    batch_losses: list[torch.Tensor]
    step_s: Seconds = 0.0
    data_s: Seconds = 0.0

    @property
    def loss(self) -> float:
        """The step's loss; waits for the device."""
        return float(torch.stack(self.batch_losses).mean())


class TrainingCallback(Protocol):
    """Told what happens; an object with some of these methods will do. What they raise is raised by `run`, with the state saved."""

    def on_step(self, end: StepEnd) -> None:
        """After every optimizer step; asking for `end.loss` waits for the device."""

    def on_log(self, point: LogPoint) -> None:
        """Every so many steps, with the losses since the last time; and after each evaluation."""

    def on_checkpoint(self, note: CheckpointNote) -> None:
        """A checkpoint is on the disk."""

    def on_adjust(self, adjustment: Adjustment) -> None:
        """A setting was changed, or what came of it is known."""

    def on_end(self, run: TrainingRun) -> None:
        """The run has ended, and its state is saved."""
