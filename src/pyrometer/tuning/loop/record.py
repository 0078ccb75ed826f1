"""What a training run leaves: its pace, where its time went, its losses, and everything that was changed on the way."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.bench.measurement import PhaseTime, QuantileEstimate
from pyrometer.quantity import Seconds, counted, format_interval, format_percent, format_rate, format_seconds
from pyrometer.quantity import significant as digits
from pyrometer.record import Record, doc
from pyrometer.tuning.loop.checkpoints import CheckpointNote

Knob = Literal["micro_batches", "num_workers", "prefetch_factor"]
Fate = Literal["on trial", "needed", "kept", "undone"]


class LogPoint(Record, frozen=True, kw_only=True):
    """The steps since the last point."""

    step: Annotated[int, doc("optimizer steps so far, skipped ones among them")]
    epoch: Annotated[int, doc("from 0")]
    losses: Annotated[list[float], doc("of each step since the last point")] = []
    metrics: Annotated[dict[str, float], doc("of the evaluation, where there was one")] = {}

    @property
    def loss(self) -> float | None:
        """Mean of the losses; `None` without any."""
        return sum(self.losses) / len(self.losses) if self.losses else None


class Adjustment(Record, frozen=True, kw_only=True):
    """One setting that the loop changed, why, and what came of it."""

    step: int
    what: Knob
    before: int
    after: int
    reason: str
    before_s: Annotated[Seconds | None, doc("median step before; null where no step had run")] = None
    after_s: Annotated[Seconds | None, doc("median step afterwards; null while on trial")] = None
    fate: Annotated[
        Fate,
        doc(
            "needed: without it memory runs out; kept: it was faster; undone: it was not, or no longer needed"
        ),
    ] = "on trial"

    def __str__(self) -> str:
        change = f"step {self.step}: {self.what} {self.before} → {self.after} ({self.reason})"
        if self.after_s:
            change += f", {format_seconds(self.before_s)} → {format_seconds(self.after_s)} a step"
        return f"{change}: {self.fate}"


class TrainingRun(Record, frozen=True, kw_only=True):
    """What one call of `TrainingLoop.run` did."""

    first_step: Annotated[int, doc("the step that it went on from; 0 for a training from the start")]
    step: Annotated[int, doc("optimizer steps of the whole training so far, skipped ones among them")]
    epoch: Annotated[int, doc("from 0")]
    ended: Annotated[str, doc("why it ended")]
    elapsed_s: Annotated[Seconds, doc("everything, with evaluations and checkpoints")]
    unit: str
    steps_s: Annotated[Seconds, doc("the steps alone")]
    units_per_s: Annotated[float | None, doc("over the steps alone; null where no step ran")] = None
    step_time: Annotated[
        QuantileEstimate | None, doc("median of the last thousand steps; null below eight")
    ] = None
    phases: Annotated[list[PhaseTime], doc("of up to the last thousand steps that were timed by phases")] = []
    num_overflows: Annotated[int, doc("steps that the scaler skipped, of this run")] = 0
    scale: Annotated[float | None, doc("of the scaler at the end; null without")] = None
    log: list[LogPoint] = []
    adjustments: list[Adjustment] = []
    checkpoints: Annotated[
        list[CheckpointNote], doc("written by this run; the oldest are deleted by now")
    ] = []
    rejected: Annotated[list[str], doc("checkpoints that were damaged and passed over")] = []

    @property
    def losses(self) -> list[float]:
        """The loss of each step of this run."""
        return [loss for point in self.log for loss in point.losses]

    def __str__(self) -> str:
        return "\n".join([*self._pace(), *self._phases(), *self._events()])

    def _pace(self) -> list[str]:
        number = self.step - self.first_step
        rate = f" · {format_rate(self.units_per_s, self.unit + '/s')}" if self.units_per_s else ""
        median = self.step_time
        if median is not None:
            interval = format_interval(median.low_s, median.high_s, 1e-3)
            rate = f" · {digits(median.value_s * 1e3)} ms ({interval}) a step{rate}"
        losses = self.losses
        ends = f" · loss {digits(losses[0])} → {digits(losses[-1])}" if losses else ""
        return [f"{counted(number, 'step')} in {format_seconds(self.elapsed_s)}{rate}{ends}; {self.ended}"]

    def _phases(self) -> list[str]:
        shown = [
            f"{phase.name} {format_percent(phase.share, 2)}" for phase in self.phases if phase.share >= 0.005
        ]
        return [", ".join(shown)] if shown else []

    def _events(self) -> list[str]:
        lines = []
        if self.scale is not None:
            share = format_percent(self.num_overflows / max(self.step - self.first_step, 1), 2)
            lines.append(f"overflows in {share} of the steps, scale {digits(self.scale)}")
        lines += [str(adjustment) for adjustment in self.adjustments]
        if self.checkpoints:
            last = self.checkpoints[-1]
            lines.append(f"{counted(len(self.checkpoints), 'checkpoint')}, the last {last.path}")
        return lines + [f"damaged: {reason}" for reason in self.rejected]
