"""From the timings of a pass to stages, shares and the model's check. Pure: plain figures in, figures out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from pyrometer.loading.model import LoaderModel
from pyrometer.loading.report import StageTime, Where
from pyrometer.loading.settings import LoaderSettings
from pyrometer.loading.shared_times import BatchCost
from pyrometer.loading.watched import Pull
from pyrometer.quantity import Seconds

DATA, REST = "data", "rest"
MIN_STEADY = 5
MIN_READY = 3


@dataclass(frozen=True)
class StepTimes:
    """One training step.

    Attributes:
        total_s: all of it.
        phases: time of each phase; `data` is getting the batches.
        pulls: how the batches came, one per micro-batch.
        cpu_s: CPU time of the training process, all threads.
    """

    total_s: Seconds
    phases: dict[str, Seconds]
    pulls: Sequence[Pull]
    cpu_s: Seconds = 0.0

    @property
    def data_s(self) -> Seconds:
        """Getting the batches."""
        return self.phases.get(DATA, 0.0)

    @property
    def is_start(self) -> bool:
        """Whether it waited for the first batch of an epoch."""
        return any(pull.first for pull in self.pulls)


@dataclass(frozen=True)
class WorkerStart:
    """What it takes to have workers, as one of them showed.

    Attributes:
        each_s: to start and end a worker; the training process does so one after the other.
        once_s: until the first has got ready for its first batch.
        overhead_s: what a worker does around a batch.
        receive_s: to take a batch from it.
        refused: why there can be none; `None` where there can.
    """

    each_s: Seconds = 0.0
    once_s: Seconds = 0.0
    overhead_s: Seconds = 0.0
    receive_s: Seconds = 0.0
    refused: str | None = None

    def of(self, num_workers: int) -> Seconds:
        """For so many workers, once per epoch unless they are kept.

        >>> WorkerStart(each_s=0.25, once_s=0.5).of(2)
        1.0
        """
        return num_workers * self.each_s + self.once_s if num_workers else 0.0


@dataclass(frozen=True)
class LoadingPass:
    """What was seen while a training ran for some steps.

    Attributes:
        settings: of the loader; as if without workers, where there is no loader.
        steps: in time order.
        costs: of the batches, where they were made; empty where that cannot be told.
        device: type of the device that the step runs on.
        cpus: that this process and its workers may keep busy.
        pin_s: to pin one batch; 0 where none is pinned.
        tried: what one worker showed, where the loader has none; `None` where none was tried.
    """

    settings: LoaderSettings
    steps: Sequence[StepTimes]
    costs: Sequence[BatchCost] = ()
    device: str = "cpu"
    cpus: float = 1.0
    pin_s: Seconds = 0.0
    tried: WorkerStart | None = None
    _steady: list[StepTimes] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        running = [step for step in self.steps if not step.is_start]
        # A queue that was filled before the first step hides for a while that the workers cannot keep up.
        skipped = min(self.settings.capacity, max(0, len(running) - MIN_STEADY))
        self._steady.extend(running[skipped:] or self.steps)

    @property
    def steady(self) -> list[StepTimes]:
        """The steps that count: without those that begin an epoch, unless each does."""
        return self._steady

    @property
    def step_s(self) -> Seconds:
        """Mean step."""
        return _mean([step.total_s for step in self.steady])

    @property
    def data_s(self) -> Seconds:
        """Mean time of a step to get its batches."""
        return _mean([step.data_s for step in self.steady])

    @property
    def wait_fraction(self) -> float:
        """Median share of a step that getting its batches took."""
        return float(np.median([step.data_s / max(step.total_s, 1e-12) for step in self.steady]))

    @property
    def first_batch_s(self) -> Seconds:
        """Median time until an epoch's first batch was there."""
        firsts = [pull.wait_s for step in self.steps for pull in step.pulls if pull.first]
        return float(np.median(firsts)) if firsts else 0.0

    @property
    def receive_s(self) -> Seconds:
        """Time per step to take batches that are ready."""
        if not self.settings.num_workers:
            return 0.0
        pulls = [pull for step in self.steady for pull in step.pulls]
        return min(self.data_s, self.pulls_per_step * handover_s(pulls, self.settings))

    @property
    def pulls_per_step(self) -> float:
        """Batches of a step."""
        return _mean([float(len(step.pulls)) for step in self.steady])

    @property
    def occupancy(self) -> float | None:
        """Mean share of the queue that was full when a batch was asked for."""
        ready = [pull.ready for step in self.steady for pull in step.pulls if pull.ready is not None]
        capacity = self.settings.capacity
        return min(1.0, _mean(ready) / capacity) if ready and capacity else None

    @property
    def worker_busy(self) -> float | None:
        """Share of the time that the workers spent on batches."""
        pulls = [pull for step in self.steady for pull in step.pulls]
        if not pulls:
            return None
        costs = [cost for cost in self.costs if cost.started_s >= pulls[0].done_s]
        return busy_share(costs, self.settings.num_workers, pulls[-1].done_s)

    @property
    def model(self) -> LoaderModel | None:
        """The parts of a step, for predictions; `None` where the cost of batches is not known."""
        if not self.costs:
            return None
        model = model_of(
            self.costs,
            self.settings,
            per_step=self.pulls_per_step,
            receive_s=self.receive_s,
            compute_s=max(0.0, self.step_s - self.data_s),
            compute_cpu_s=self._compute_cpu_s(),
            cpus=self.cpus,
        )
        if self.tried is None:
            return model
        per_step = self.pulls_per_step
        return msgspec.structs.replace(
            model,
            overhead_s=per_step * self.tried.overhead_s,
            receive_s=per_step * self.tried.receive_s,
        )

    @property
    def start(self) -> WorkerStart:
        """Of workers: as one showed that was tried, else as the loader's own did, whose ending was not seen."""
        count = self.settings.num_workers
        if self.tried is not None or not count or not self.costs:
            return self.tried or WorkerStart()
        making_s = _mean([cost.total_s for cost in self.costs])
        return WorkerStart(each_s=max(0.0, self.first_batch_s - making_s) / count)

    def _compute_cpu_s(self) -> Seconds:
        taking = [sum(pull.cpu_s for pull in step.pulls) for step in self.steady]
        own = [step.cpu_s - taken for step, taken in zip(self.steady, taking, strict=True)]
        return max(0.0, _mean(own))


def model_of(
    costs: Sequence[BatchCost], settings: LoaderSettings, *, per_step: float = 1.0, **parts: float
) -> LoaderModel:
    """The parts of a step, from what its batches cost; `parts` are the other fields of the model."""
    total_s = _mean([cost.total_s for cost in costs])
    alone_s = _mean([cost.storage_s + cost.busy_s + cost.collate_busy_s for cost in costs])
    return LoaderModel(
        batch_s=per_step * total_s,
        # Waiting for a CPU counts as if it were work: more workers would only wait more.
        batch_cpu_s=per_step * _mean([c.busy_s + c.queued_s + c.collate_busy_s for c in costs]),
        # Without workers nobody takes the CPU away.
        alone_s=per_step * (alone_s if settings.num_workers else total_s),
        **parts,
    )


def busy_share(costs: Sequence[BatchCost], num_workers: int, end_s: Seconds) -> float | None:
    """Share of the time until `end_s` that workers spent on these batches; `None` for too few of them."""
    if not num_workers or len(costs) < 2 * num_workers:
        return None
    span_s = max(end_s, *(cost.started_s + cost.total_s for cost in costs)) - min(c.started_s for c in costs)
    return min(1.0, sum(cost.total_s for cost in costs) / (num_workers * span_s)) if span_s > 0 else None


def handover_s(pulls: Sequence[Pull], settings: LoaderSettings) -> Seconds:
    """Mean time to take a batch that is ready: it must be unpacked, and the process find a CPU and the queue free.

    Each worker has at most `prefetch_factor` batches ahead. So where more are ready than all workers but one can have, the next in
    order is among them, and all of the time went to taking it. Elsewhere the batch may have been late, and what counts is the
    median of those that were not, or the CPU time where there are none.
    """
    if not pulls or not settings.num_workers:
        return 0.0
    others = settings.capacity - settings.capacity // settings.num_workers
    surely = [pull.wait_s for pull in pulls if (pull.ready or 0) > others]
    some = [pull.wait_s for pull in pulls if pull.ready]
    known = next((waits for waits in (surely, some) if len(waits) >= MIN_READY), None)
    typical_s = float(np.median(known)) if known else _mean([pull.cpu_s for pull in pulls])
    return _mean([p.wait_s if (p.ready or 0) > others else min(p.wait_s, typical_s) for p in pulls])


def stage_times(seen: LoadingPass) -> list[StageTime]:
    """The way of a batch, station by station: made in workers or the training process, then the phases of the step."""
    made_in: Where = "worker" if seen.settings.num_workers else "main"
    stages = _making(seen, made_in)
    if seen.settings.num_workers or not stages:
        wait_s = max(0.0, seen.data_s - seen.receive_s)
        stages.append(_stage(seen, "wait", "main", wait_s, 0.0 if seen.settings.num_workers else None))
    if seen.settings.num_workers:
        stages.append(_stage(seen, "receive", "main", seen.receive_s))
    if seen.pin_s:
        thread: Where = "pin thread" if seen.settings.num_workers else "main"
        stages.append(_stage(seen, "pin", thread, seen.pin_s * seen.pulls_per_step))
    return stages + _phases(seen)


def _making(seen: LoadingPass, where: Where) -> list[StageTime]:
    """What the batches cost where they were made, brought to one step."""
    if not seen.costs:
        return []
    per_step, costs = seen.pulls_per_step, seen.costs
    storage_s = per_step * _mean([cost.storage_s for cost in costs])
    decode_s = per_step * _mean([cost.dataset_s - cost.storage_s for cost in costs])
    busy_s = per_step * _mean([cost.busy_s for cost in costs])
    collate_s = per_step * _mean([cost.collate_s for cost in costs])
    collate_busy_s = per_step * _mean([cost.collate_busy_s for cost in costs])
    return [
        _stage(seen, "fetch", where, storage_s, 0.0),
        _stage(seen, "decode", where, decode_s, _share(busy_s, decode_s)),
        _stage(seen, "collate", where, collate_s, _share(collate_busy_s, collate_s)),
    ]


def _phases(seen: LoadingPass) -> list[StageTime]:
    names = dict.fromkeys(name for step in seen.steady for name in step.phases if name not in {DATA, REST})
    times = {name: _mean([step.phases.get(name, 0.0) for step in seen.steady]) for name in (*names, REST)}
    where: Where = "main" if seen.device == "cpu" else "device"
    # On the CPU nothing is copied to a device; what the mark itself costs is no stage.
    hidden = {"h2d"} if seen.device == "cpu" else set()
    return [_stage(seen, name, where, value) for name, value in times.items() if name not in hidden]


def _stage(
    seen: LoadingPass, name: str, where: Where, per_step_s: Seconds, cpu_share: float | None = None
) -> StageTime:
    share = per_step_s / max(seen.step_s, 1e-12)
    return StageTime(name=name, where=where, per_step_s=per_step_s, share=share, cpu_share=cpu_share)


def _share(part: float, whole: float) -> float | None:
    return min(1.0, part / whole) if whole > 0 else None


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
