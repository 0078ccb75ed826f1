"""What one call of `run` has done so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import torch

from pyrometer.quantity import Seconds
from pyrometer.tuning.loop.checkpoints import CheckpointNote
from pyrometer.tuning.loop.record import LogPoint, TrainingRun
from pyrometer.tuning.loop.step import LoopStep
from pyrometer.tuning.loop.timing import StepTimes


@dataclass
class Progress:
    """The log of a run, and what steps and times were when it began."""

    steps: LoopStep
    times: StepTimes
    first_step: int
    log: list[LogPoint] = field(default_factory=list)
    checkpoints: list[CheckpointNote] = field(default_factory=list)
    unread: list[list[torch.Tensor]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began_s = time.perf_counter()
        self._before = (self.times.total_s, self.steps.num_batches, self.steps.num_overflows)

    def point(self, step: int, epoch: int, metrics: dict[str, float]) -> LogPoint:
        """The losses of the steps since the last point, read from the device at once."""
        flat = [loss for losses in self.unread for loss in losses]
        values = iter(torch.stack(flat).flatten().tolist() if flat else [])
        means = [sum(next(values) for _ in losses) / len(losses) for losses in self.unread]
        self.unread.clear()
        self.log.append(LogPoint(step=step, epoch=epoch, losses=means, metrics=metrics))
        return self.log[-1]

    def record(self, **ended: Any) -> TrainingRun:
        """What came of it, with what the loop knows of its end."""
        seconds, batches, overflows = self._before
        steps_s: Seconds = self.times.total_s - seconds
        units = self.steps.counter.units_per_step * (self.steps.num_batches - batches)
        scaler = self.steps.parts.scaler
        return TrainingRun(
            **ended,
            first_step=self.first_step,
            elapsed_s=time.perf_counter() - self._began_s,
            steps_s=steps_s,
            units_per_s=units / steps_s if steps_s else None,
            step_time=self.times.median(),
            phases=self.times.phases(),
            num_overflows=self.steps.num_overflows - overflows,
            scale=scaler.get_scale() if scaler is not None else None,
            log=self.log,
            checkpoints=self.checkpoints,
        )
