"""Shared memory in which the workers of a loader note what each batch cost them; the training process reads along.

One row of floats per worker: how many batches it made, its process id, and a ring of the last batches. Each worker writes only to
its own row, and counts a batch up after it is written down.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from pyrometer.bench.autocorrelation import Floats
from pyrometer.quantity import Seconds

RING = 256
_HEADER = 2  # batches made, process id


@dataclass(frozen=True)
class BatchCost:
    """What one batch cost the process that made it, in seconds.

    Attributes:
        started_s: when the dataset was first asked, on the clock `time.perf_counter`.
        dataset_s: in the dataset, collate apart.
        busy_s: of it, on a CPU; of all threads, where more than one worked, but never more than `dataset_s`.
        queued_s: of it, ready to run but without a CPU; 0 where the kernel does not tell.
        cpu_s: CPU time of the whole process meanwhile; above `dataset_s` where several threads decode.
        collate_s: in the collate function.
        collate_busy_s: of it, on a CPU.
        read_bytes: what the dataset read from files by system calls; 0 where the kernel does not tell.
    """

    started_s: Seconds
    dataset_s: Seconds
    busy_s: Seconds
    queued_s: Seconds
    cpu_s: Seconds
    collate_s: Seconds
    collate_busy_s: Seconds
    read_bytes: float

    @property
    def total_s(self) -> Seconds:
        """Dataset and collate."""
        return self.dataset_s + self.collate_s

    @property
    def storage_s(self) -> Seconds:
        """In the dataset, neither on a CPU nor waiting for one: for the disk, the network or a sleep."""
        return max(0.0, self.dataset_s - self.busy_s - self.queued_s)


_FIELDS = len(fields(BatchCost))


class SharedTimes:
    """The shared rows. It is inherited by workers, or pickled while they are started; never otherwise.

    Args:
        num_workers: rows; one for the main process where there are none.

    >>> shared_times = SharedTimes(1)
    >>> shared_times.note(0, BatchCost(0.0, 0.5, 0.4, 0.0, 0.4, 0.1, 0.1, 0.0))
    >>> shared_times.num_made, [cost.total_s for cost in shared_times.costs()]
    (1, [0.6])
    """

    def __init__(self, num_workers: int) -> None:
        self._num_rows = max(num_workers, 1)
        self._shared = multiprocessing.RawArray("d", self._num_rows * (_HEADER + RING * _FIELDS))

    @property
    def _rows(self) -> Floats:
        return np.frombuffer(self._shared).reshape(self._num_rows, -1)

    def enter(self, worker: int, pid: int) -> None:
        """Note which process the worker is."""
        self._rows[worker, 1] = pid

    def note(self, worker: int, cost: BatchCost) -> None:
        """Note what a batch cost a worker."""
        row = self._rows[worker]
        place = _HEADER + int(row[0]) % RING * _FIELDS
        row[place : place + _FIELDS] = [getattr(cost, field.name) for field in fields(cost)]
        row[0] += 1

    @property
    def num_made(self) -> int:
        """Batches that were made so far, by all workers together."""
        return int(self._rows[:, 0].sum())

    @property
    def pids(self) -> list[int]:
        """The processes that have begun to work."""
        return [int(pid) for pid in self._rows[:, 1] if pid]

    def costs(self, since_s: Seconds = 0.0) -> Iterator[BatchCost]:
        """The last batches of every worker, in the order in which each began them, from a moment on."""
        for row in self._rows.copy():
            made = int(row[0])
            for number in range(max(0, made - RING), made):
                place = _HEADER + number % RING * _FIELDS
                cost = BatchCost(*(float(value) for value in row[place : place + _FIELDS]))
                if cost.started_s >= since_s:
                    yield cost

    def __getstate__(self) -> dict[str, Any]:
        return {"_num_rows": self._num_rows, "_shared": self._shared}
