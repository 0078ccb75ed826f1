"""What one turn of one setting showed: time per batch, waiting, memory. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pyrometer.bench.autocorrelation import Floats
from pyrometer.bench.quantiles import mean_interval
from pyrometer.loading.model import LoaderModel
from pyrometer.loading.settings import LoaderSettings
from pyrometer.loading.worker_memory import shared_bytes
from pyrometer.quantity import Bytes, Seconds

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Round:
    """Some batches in a row: as many as there are workers, which often deliver together, or a whole short epoch."""

    num_batches: int
    elapsed_s: Seconds
    wait_s: Seconds
    starts: bool


@dataclass(frozen=True)
class Turn:
    """What one turn showed.

    Attributes:
        rounds: in time order.
        start_s: until the first batch was there.
        drained: batches that came from the queue without being made meanwhile: it held less at the end.
        model: what a batch costs, measured in this turn; `None` where it cannot be told.
        worker_busy: share of the time that the workers were at work.
        memory_bytes: of the workers alone, with their queue.
        per_worker_bytes: of one worker.
        bytes_per_batch: of one batch.
        epoch_batches: of an epoch, where that is known.
        by_epoch: whether each round is a whole epoch, start and all.
    """

    settings: LoaderSettings
    rounds: list[Round]
    start_s: Seconds
    drained: int = 0
    model: LoaderModel | None = None
    worker_busy: float | None = None
    per_worker_bytes: Bytes = 0
    bytes_per_batch: Bytes = 0
    epoch_batches: int | None = None
    by_epoch: bool = False

    def pooled(self, turn: Turn) -> Turn:
        """Both turns of one setting together."""
        return replace(
            self,
            rounds=[*self.rounds, *turn.rounds],
            drained=max(self.drained, 0) + max(turn.drained, 0),
            start_s=(self.start_s + turn.start_s) / 2,
            per_worker_bytes=max(self.per_worker_bytes, turn.per_worker_bytes),
        )

    @property
    def memory_bytes(self) -> Bytes:
        """Of the workers alone, and of a full queue."""
        workers = self.settings.num_workers * self.per_worker_bytes
        return workers + shared_bytes(self.settings.capacity, self.bytes_per_batch)

    @property
    def start_per_batch_s(self) -> Seconds:
        """The start of the workers, spread over an epoch; 0 where it happens once, or is in the rounds."""
        if self.by_epoch or self.settings.persistent_workers or not self.epoch_batches:
            return 0.0
        return self.start_s / self.epoch_batches

    @property
    def times_s(self) -> Floats:
        """Time per batch of each round."""
        # A queue that ran down hid how slow the workers are: only what they made in that time counts. One batch per worker more or
        # less says nothing, since workers often deliver together.
        hidden = max(0, self.drained - self.settings.num_workers)
        made = max(1, self._num_batches - min(hidden, self._num_batches // 2))
        scale = self._num_batches / made
        each = [one.elapsed_s / one.num_batches for one in self._counting]
        return np.array(each) * scale + self.start_per_batch_s

    @property
    def batch_s(self) -> Seconds:
        """Mean time per batch."""
        return float(self.times_s.mean())

    @property
    def interval_s(self) -> tuple[Seconds, Seconds]:
        """Interval of the mean time per batch."""
        low, high = mean_interval(self.times_s, CONFIDENCE)
        return max(0.0, low), high

    @property
    def wait_fraction(self) -> float:
        """Share of the time that was waiting."""
        return float(np.mean(self._waits))

    @property
    def highest_wait_fraction(self) -> float:
        """Upper end of the interval of the share."""
        return mean_interval(self._waits, CONFIDENCE)[1] if len(self._waits) > 1 else 1.0

    @property
    def _waits(self) -> Floats:
        return np.array([min(1.0, one.wait_s / max(one.elapsed_s, 1e-12)) for one in self._counting])

    @property
    def _counting(self) -> list[Round]:
        if self.by_epoch:
            return self.rounds
        return [one for one in self.rounds if not one.starts] or self.rounds

    @property
    def _num_batches(self) -> int:
        return sum(one.num_batches for one in self._counting)
