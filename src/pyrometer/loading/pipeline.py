"""Observing how a training gets its data: some steps of it are run, with every batch watched on its way."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import msgspec
import torch
from torch.utils import _pytree as pytree
from torch.utils.data import DataLoader

from pyrometer.bench.clock import Clock, clock_for
from pyrometer.errors import InputError
from pyrometer.hardware.cpu import usable_cpus
from pyrometer.loading.advising import advise
from pyrometer.loading.batch_bytes import batch_bytes
from pyrometer.loading.figures import require_count, require_positive
from pyrometer.loading.loader import epoch_batches
from pyrometer.loading.private import fetching
from pyrometer.loading.report import LoaderReport
from pyrometer.loading.stages import REST, LoadingPass, StepTimes, stage_times
from pyrometer.loading.starting import try_worker
from pyrometer.loading.verdict import HEALTHY, LoadingFigures, classify, sentence
from pyrometer.loading.watched import WatchedBatches
from pyrometer.loading.worker_memory import free_shared_bytes, shared_bytes
from pyrometer.quantity import Bytes, Seconds, format_percent
from pyrometer.workload.failure import user_code
from pyrometer.workload.training import Training, TrainingSession

DEFAULT_STEPS = 60
DEFAULT_BUDGET_S = 10.0
MIN_STEPS = 3
TOLERANCE = 0.25
"""Beyond this difference between the predicted and the measured step, the parts do not explain it."""


def observe_loading(
    work: Training,
    *,
    steps: int = DEFAULT_STEPS,
    budget_s: Seconds = DEFAULT_BUDGET_S,
    clock: Clock | None = None,
) -> LoaderReport | None:
    """Where the time of a step's data goes, and whether the step waits for it.

    The training runs for some steps with a copy of its loader, and is restored. Batches are timed where they are made, also in
    workers, without a change to the dataset or the batch. Where a loader without workers takes a good part of the step, one worker
    is started and ended after the steps, to learn what that takes.

    Args:
        work: a training; its loader is left alone.
        steps: at most so many.
        budget_s: no step is begun after so many seconds, but at least three are run.
        clock: by default the right one for the device.

    Returns:
        `None` when the batches are a list or tuple that is in memory already, so that nothing is loaded.

    Raises:
        InputError: the figures are not positive, or the workload is no training.
        UserProgramError: the loader or the training failed.

    >>> from torch import nn
    >>> model = nn.Linear(2, 1)
    >>> loader = DataLoader([(torch.ones(2), torch.ones(1))] * 40, batch_size=4)
    >>> work = Training(model, nn.functional.mse_loss, torch.optim.SGD(model.parameters()), loader)
    >>> [stage.name for stage in observe_loading(work, steps=8).stages][:3]
    ['fetch', 'decode', 'collate']
    """
    if not isinstance(work, Training):
        raise InputError(f"work: got {type(work).__name__}; a pm.Training has a loader to observe")
    require_count("steps", steps)
    require_positive("budget_s", budget_s, f"{DEFAULT_BUDGET_S:g}")
    if isinstance(work.batches, (list, tuple)):
        return None
    with contextlib.closing(WatchedBatches(work.batches)) as watched:
        own = work.variant()
        own.batches = watched
        with own.open() as session:
            run = _Run(session, watched, clock or clock_for(session.device))
            run.go(steps, budget_s)
            return _reported(run, work.batches)


@dataclass
class _Run:
    """Some steps of a training, as they are timed."""

    session: TrainingSession
    watched: WatchedBatches
    clock: Clock
    steps: list[StepTimes] = field(default_factory=list)
    worker_bytes: Bytes | None = None
    bytes_per_batch: Bytes = 0
    pin_s: Seconds = 0.0

    def go(self, num_steps: int, budget_s: Seconds) -> None:
        """Run them."""
        deadline_ns = self.clock.host_ns() + int(budget_s * 1e9)
        self.session.activate()
        marks: list[list[tuple[str, Any]]] = []
        slices: list[tuple[int, int]] = []
        while len(marks) < MIN_STEPS or (len(marks) < num_steps and self.clock.host_ns() < deadline_ns):
            before = len(self.watched.pulls)
            marks.append(self._step())
            slices.append((before, len(self.watched.pulls)))
        self.clock.synchronize()
        self.worker_bytes = self.watched.worker_bytes
        self._look_at_a_batch()
        # An asynchronous device has reached the marks only now; until then they may not be asked for their time.
        for position, (first, last) in enumerate(slices):
            self.steps.append(self._timed(marks[position], first, last))

    def _step(self) -> list[tuple[str, Any]]:
        cpu_ns = self.clock.cpu_ns()
        marks: list[tuple[str, Any]] = [("", self.clock.mark())]
        with user_code("a training step"):
            self.session.phased_step(lambda phase: marks.append((phase, self.clock.mark())))
        marks += [(REST, self.clock.mark()), ("cpu", (self.clock.cpu_ns() - cpu_ns) * 1e-9)]
        return marks

    def _timed(self, marks: list[tuple[str, Any]], first: int, last: int) -> StepTimes:
        *marks, (_, cpu_s) = marks
        phases: dict[str, Seconds] = defaultdict(float)
        for (_, start), (phase, end) in pairwise(marks):
            phases[phase] += self.clock.between(start, end)
        total_s = self.clock.between(marks[0][1], marks[-1][1])
        return StepTimes(total_s, dict(phases), self.watched.pulls[first:last], cpu_s)

    def _look_at_a_batch(self) -> None:
        """Size of one more batch, and what it takes to pin it; after the timing, since it takes time itself."""
        batch = next(self.watched, None)
        self.bytes_per_batch = batch_bytes(batch)
        if self.watched.settings.pin_memory and torch.accelerator.is_available():
            self.pin_s = _pin_seconds(batch, self.clock.host_ns)

    def seen(self, loader: DataLoader[Any] | None) -> LoadingPass:
        """What was seen; where loading takes turns with computing, with what a worker would take."""
        seen = LoadingPass(
            settings=self.watched.settings,
            steps=self.steps,
            costs=self.watched.costs(),
            device=self.session.device.type,
            cpus=usable_cpus(),
            pin_s=self.pin_s,
        )
        if loader is None or seen.settings.num_workers or seen.data_s < HEALTHY * seen.step_s:
            return seen
        return replace(seen, tried=try_worker(loader))


def _pin_seconds(batch: Any, host_ns: Callable[[], int]) -> Seconds:
    """The fastest of three times that a batch was copied to pinned memory."""
    times = []
    pageable = pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, batch)
    for _ in range(3):
        start = host_ns()
        pytree.tree_map_only(torch.Tensor, torch.Tensor.pin_memory, pageable)
        times.append((host_ns() - start) * 1e-9)
    return min(times)


def _reported(run: _Run, batches: Any) -> LoaderReport:
    loader = batches if isinstance(batches, DataLoader) else None
    seen, watched = run.seen(loader), run.watched
    model = seen.model
    figures = LoadingFigures(
        has_loader=loader is not None,
        num_workers=seen.settings.num_workers,
        step_s=seen.step_s,
        data_s=seen.data_s,
        receive_s=seen.receive_s,
        first_batch_s=seen.first_batch_s,
        worker_busy=seen.worker_busy,
        occupancy=seen.occupancy,
        starts_anew=seen.settings.num_workers > 0 and not seen.settings.persistent_workers,
        epoch_batches=None if loader is None else epoch_batches(loader),
    )
    needed = shared_bytes(seen.settings.capacity, run.bytes_per_batch)
    report = LoaderReport(
        verdict=classify(figures),
        sentence=sentence(figures),
        settings=seen.settings,
        measured_step_s=seen.step_s,
        predicted_step_s=None if model is None else model.step_s(seen.settings.num_workers),
        data_share=figures.data_share,
        wait_s=seen.data_s,
        wait_fraction=seen.wait_fraction,
        first_batch_s=seen.first_batch_s,
        free_data_ratio=figures.free_data_ratio,
        stages=stage_times(seen),
        occupancy=seen.occupancy,
        queue_batches=seen.settings.capacity,
        worker_busy=seen.worker_busy,
        reads_bytes=_read_bytes(seen),
        batch_bytes=run.bytes_per_batch,
        worker_memory_bytes=run.worker_bytes,
        shm_needed_bytes=needed,
        shm_free_bytes=free_shared_bytes() if needed else None,
        start_method=watched.method if seen.settings.num_workers else None,
        epoch_batches=figures.epoch_batches,
        num_steps=len(seen.steady),
    )
    return msgspec.structs.replace(report, advice=advise(report, seen), notes=_notes(report, seen))


def _read_bytes(seen: LoadingPass) -> Bytes | None:
    read = [cost.read_bytes for cost in seen.costs]
    return int(seen.pulls_per_step * sum(read) / len(read)) if any(read) else None


def _notes(report: LoaderReport, seen: LoadingPass) -> list[str]:
    notes = []
    if not seen.costs:
        lost = "; ".join(fetching.missing()) or "this loader makes its batches in its own way"
        notes.append(f"what a batch costs where it is made is not known: {lost}")
    if seen.tried is not None and seen.tried.refused is not None:
        notes.append(f"workers are not advised, since one that was tried failed: {seen.tried.refused}")
    if all(step.is_start for step in seen.steps):
        notes.append("every step begins an epoch, so that the start of the loader is in every step")
    predicted = report.predicted_step_s
    if predicted is not None:
        difference = report.measured_step_s / max(predicted, 1e-12) - 1
        if abs(difference) > TOLERANCE:
            much = f"{format_percent(abs(difference), 2)} {'more' if difference > 0 else 'less'}"
            notes.append(f"the step takes {much} than its parts explain")
    if report.epoch_batches is None and report.verdict != "no-loader":
        notes.append("how many batches an epoch has is not known, so that its start cannot be weighed")
    return notes
