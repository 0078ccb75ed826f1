"""Running a turn of one setting: its workers are started, watched for a while, and ended."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch.utils.data import DataLoader

from pyrometer.errors import InputError
from pyrometer.loading.batch_bytes import batch_bytes
from pyrometer.loading.loader import epoch_batches
from pyrometer.loading.model import LoaderModel
from pyrometer.loading.settings import LoaderSettings
from pyrometer.loading.shared_times import BatchCost
from pyrometer.loading.stages import busy_share, handover_s, model_of
from pyrometer.loading.watched import Pull, WatchedBatches
from pyrometer.quantity import Seconds
from pyrometer.tuning.loader.consumers import Consumer
from pyrometer.tuning.loader.turn import Round, Turn

MIN_ROUNDS = 4
MAX_OVERTIME = 4.0
NUM_REPLAYS = 5
_ENDED = object()


class Endless:
    """Batches without an end: the loader is started anew whenever it ends."""

    def __init__(self, watched: WatchedBatches) -> None:
        self.watched = watched
        self.last: Any = None

    def __iter__(self) -> Endless:
        return self

    def __next__(self) -> Any:
        self.last = next(self.watched, _ENDED)
        if self.last is _ENDED:
            self.last = next(iter(self.watched), _ENDED)
        if self.last is _ENDED:
            raise InputError("loader: it has no batches; a loader needs at least one to be tuned")
        return self.last


@dataclass
class TurnRunner:
    """Runs turns of one loader."""

    loader: DataLoader[Any]
    consumer: Consumer
    window_s: Seconds
    cpus: float
    compute_s: Seconds | None = field(default=None, init=False)
    _compute_cpu_s: Seconds = field(default=0.0, init=False)
    _passed: int = field(default=0, init=False)

    def run(self, settings: LoaderSettings, num_rounds: int = MIN_ROUNDS) -> Turn:
        """One turn, of at least so many rounds; its time is in proportion to them.

        Raises:
            InputError: the loader has no batches, or its workers cannot be started.
            UserProgramError: the loader or the training failed.
        """
        if self.compute_s is None:
            with self._started(settings) as batches:
                self._replay(next(batches))
        with self._started(settings) as batches:
            turn = self._measured(batches, num_rounds)
        self._passed += len(batches.watched.pulls)
        return turn

    @contextlib.contextmanager
    def _started(self, settings: LoaderSettings) -> Iterator[Endless]:
        watched = WatchedBatches(self.loader, settings, skip_batches=self._unread())
        with contextlib.closing(watched):
            yield Endless(watched)

    def _unread(self) -> int:
        """Where to begin: at other samples than in the turns before, since files that were just read are in memory."""
        length = epoch_batches(self.loader)
        begin = self._passed % length if length else 0
        return begin if length and begin < length / 2 else 0

    def _replay(self, batch: Any) -> None:
        """What a step takes when its data is free: the same batch again and again.

        The workers soon have nothing to do, since nobody takes their batches; the turns that are measured start their own.
        """
        times, cpu_times, counting = [], [], _Counting(batch)
        for _ in range(NUM_REPLAYS):
            start_s, start_cpu_s, start = time.perf_counter(), time.process_time(), counting.number
            self.consumer.step(counting)
            self.consumer.finish()
            number = max(1, counting.number - start)
            times.append((time.perf_counter() - start_s) / number)
            cpu_times.append((time.process_time() - start_cpu_s) / number)
        self.compute_s, self._compute_cpu_s = float(np.median(times)), float(np.median(cpu_times))

    def _measured(self, batches: Endless, num_rounds: int) -> Turn:
        watched, length = batches.watched, epoch_batches(self.loader)
        settings = watched.settings
        self.consumer.step(batches)
        steps = max(settings.num_workers, 1)
        warm_s, before = time.perf_counter(), len(watched.pulls)
        for _ in range(steps):
            self.consumer.step(batches)
        self.consumer.finish()
        per_step = (len(watched.pulls) - before) / steps
        pace_s = (time.perf_counter() - warm_s) / (len(watched.pulls) - before)
        window_s = self.window_s * num_rounds / MIN_ROUNDS
        by_epoch = length is not None and length * pace_s < window_s
        if by_epoch and length is not None:
            steps = max(1, round(length / per_step))
        since_s, first, ready = time.perf_counter(), len(watched.pulls), watched.ready or 0
        rounds = [self._round(batches, steps)]
        while not _is_enough(rounds, num_rounds, window_s):
            rounds.append(self._round(batches, steps))
        drained = ready - (watched.ready or 0)
        costs, pulls = watched.costs(since_s), watched.pulls[first:]
        return Turn(
            settings=settings,
            rounds=rounds,
            start_s=watched.pulls[0].wait_s,
            drained=0 if by_epoch else drained,
            model=self._model(costs or watched.costs(), pulls, settings),
            worker_busy=busy_share(costs, settings.num_workers, time.perf_counter()),
            per_worker_bytes=(watched.worker_bytes or 0) // max(settings.num_workers, 1),
            bytes_per_batch=batch_bytes(batches.last),
            epoch_batches=length,
            by_epoch=by_epoch,
        )

    def _round(self, batches: Endless, steps: int) -> Round:
        watched = batches.watched
        first, epochs, start_s = len(watched.pulls), watched.num_epochs, time.perf_counter()
        for _ in range(steps):
            self.consumer.step(batches)
        self.consumer.finish()
        elapsed_s, pulls = time.perf_counter() - start_s, watched.pulls[first:]
        return Round(len(pulls), elapsed_s, self._wait_s(pulls, elapsed_s), watched.num_epochs > epochs)

    def _wait_s(self, pulls: list[Pull], elapsed_s: Seconds) -> Seconds:
        if self.consumer.waits_for_device:
            # The host asks for the next batch while the device still computes: not all of its waiting is lost.
            return max(0.0, elapsed_s - len(pulls) * (self.compute_s or 0.0))
        return sum(pull.wait_s for pull in pulls)

    def _model(
        self, costs: list[BatchCost], pulls: list[Pull], settings: LoaderSettings
    ) -> LoaderModel | None:
        if not costs:
            return None
        return model_of(
            costs,
            settings,
            receive_s=handover_s(pulls, settings),
            compute_s=self.compute_s or 0.0,
            compute_cpu_s=self._compute_cpu_s,
            cpus=self.cpus,
        )


def _is_enough(rounds: list[Round], num_rounds: int, window_s: Seconds) -> bool:
    passed_s = sum(one.elapsed_s for one in rounds)
    return passed_s >= window_s and (len(rounds) >= num_rounds or passed_s > MAX_OVERTIME * window_s)


class _Counting:
    """One batch without an end, counted."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self.number = 0

    def __iter__(self) -> _Counting:
        return self

    def __next__(self) -> Any:
        self.number += 1
        return self._batch
