"""Timing where the batches are made: around the dataset and the collate function, in the workers or in the main process.

The batch, the order, random numbers, `worker_init_fn`, the dataset's class and what `get_worker_info()` says stay as they are. What
is exchanged is the loader's collate function and `worker_init_fn`, for ones that call the user's, and in worker processes the place
where torch makes its fetcher.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrometer.bench.clock import queued_ns
from pyrometer.loading.private import fetching
from pyrometer.loading.shared_times import BatchCost, SharedTimes
from pyrometer.quantity import Seconds

_IO = Path("/proc/thread-self/io")


@dataclass(frozen=True)
class Reading:
    """The clocks of a thread at one moment; see `BatchCost` for what they are good for."""

    wall_s: Seconds
    thread_s: Seconds
    process_s: Seconds
    queued_s: Seconds = 0.0
    read_bytes: int = 0

    @classmethod
    def now(cls, *, kernel: bool = True) -> Reading:
        """Read them; `kernel` also what only the kernel knows, for some twenty microseconds."""
        return cls(
            time.perf_counter(),
            time.thread_time(),
            time.process_time(),
            queued_ns() * 1e-9 if kernel else 0.0,
            _read_bytes() if kernel else 0,
        )


class Timed:
    """The stopwatch of one process that makes batches.

    Shared by the collate function and `worker_init_fn` of a loader; pickled together with them, it stays one object.
    """

    def __init__(self, shared_times: SharedTimes) -> None:
        self.shared_times = shared_times
        self.worker = 0
        self._collated: tuple[Reading, Reading] | None = None

    def fetch(self, fetch: fetching.Fetch) -> fetching.Fetch:
        """A fetcher's function that notes its time; what it raises passes, and is not counted."""

        def timed_fetch(index: Any) -> Any:
            self._collated = None
            before = Reading.now()
            batch = fetch(index)
            after = Reading.now()
            self.shared_times.note(self.worker, _cost(before, self._collated, after))
            return batch

        return timed_fetch

    def collate(self, collate: Callable[[Any], Any], samples: Any) -> Any:
        """Call the user's collate function and remember its time."""
        before = Reading.now(kernel=False)
        batch = collate(samples)
        self._collated = (before, Reading.now(kernel=False))
        return batch


class TimedCollate:
    """The user's collate function, timed."""

    def __init__(self, collate: Callable[[Any], Any], timed: Timed) -> None:
        self._collate = collate
        self._timed = timed

    def __call__(self, samples: Any) -> Any:
        """Collate."""
        return self._timed.collate(self._collate, samples)


class TimedStart:
    """The user's `worker_init_fn`, after the worker is known and its fetcher will be timed."""

    def __init__(self, start: Callable[[int], Any] | None, timed: Timed) -> None:
        self._start = start
        self._timed = timed

    def __call__(self, worker: int) -> None:
        """Prepare the worker."""
        self._timed.worker = worker
        self._timed.shared_times.enter(worker, os.getpid())
        fetching.wrap_fetchers(self._timed.fetch)
        if self._start is not None:
            self._start(worker)


def _cost(before: Reading, collated: tuple[Reading, Reading] | None, after: Reading) -> BatchCost:
    """Split what a fetch took between dataset and collate."""
    collate_s = collate_busy_s = collate_cpu_s = 0.0
    if collated is not None:
        start, end = collated
        collate_s, collate_cpu_s = end.wall_s - start.wall_s, end.process_s - start.process_s
        collate_busy_s = _busy(collate_s, end.thread_s - start.thread_s, collate_cpu_s)
        collate_thread_s = end.thread_s - start.thread_s
    else:
        collate_thread_s = 0.0
    dataset_s = max(0.0, after.wall_s - before.wall_s - collate_s)
    cpu_s = max(0.0, after.process_s - before.process_s - collate_cpu_s)
    return BatchCost(
        started_s=before.wall_s,
        dataset_s=dataset_s,
        busy_s=_busy(dataset_s, after.thread_s - before.thread_s - collate_thread_s, cpu_s),
        queued_s=max(0.0, after.queued_s - before.queued_s),
        cpu_s=cpu_s,
        collate_s=collate_s,
        collate_busy_s=collate_busy_s,
        read_bytes=float(max(0, after.read_bytes - before.read_bytes)),
    )


def _busy(wall_s: Seconds, thread_s: Seconds, process_s: Seconds) -> Seconds:
    """How long a CPU was at work: while other threads decode, the calling one only waits for them."""
    return min(wall_s, max(thread_s, process_s, 0.0))


def _read_bytes() -> int:
    """Bytes that this thread has asked files for; 0 where the kernel does not count them."""
    line = _text(_IO).partition("\n")[0]
    return int(line.split()[1]) if line.startswith("rchar:") else 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except OSError:
        return ""
