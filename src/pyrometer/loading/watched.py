"""A copy of the user's loader that can be watched: every batch is timed, where it is made and where it is taken."""

from __future__ import annotations

import contextlib
import copy
import itertools
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import torch
from torch.utils.data import DataLoader, IterableDataset

from pyrometer.loading.failure import loader_code, starting_workers
from pyrometer.loading.loader import settings_of, start_method, with_settings
from pyrometer.loading.private import fetching, loader_queue
from pyrometer.loading.settings import LoaderSettings
from pyrometer.loading.shared_times import BatchCost, SharedTimes
from pyrometer.loading.timing import Timed, TimedCollate, TimedStart
from pyrometer.loading.worker_memory import own_bytes
from pyrometer.quantity import Bytes, Seconds
from pyrometer.workload.batches import own_loader

_ENDED = object()
PATIENCE_S = 5.0

# What torch and Python say about settings that are only being tried, or that are the user's own.
_EXPECTED = ("This DataLoader will create", "'pin_memory' argument is set as true", "pin_memory_device is deprecated",
             "This process .* is multi-threaded, use of fork", "Got pickle error when attempting")  # fmt: skip


@dataclass(frozen=True)
class Pull:
    """Taking one batch.

    Attributes:
        wait_s: until it was there; for the first batch of an epoch, with the start of the workers.
        cpu_s: of it, CPU time of the calling thread.
        ready: batches that were ready before; `None` where that cannot be told.
        first: whether it was the first of an epoch.
        done_s: when it was there, on the clock `time.perf_counter`.
    """

    wait_s: Seconds
    cpu_s: Seconds
    ready: int | None
    first: bool
    done_s: Seconds


class WatchedBatches:
    """An iterable of the same batches; may be iterated again when it has ended. `close()` ends the workers.

    A `DataLoader` is copied, down to its samplers and generators, so that the user's own is not disturbed.

    Args:
        batches: the user's loader, or any iterable.
        settings: to be tried instead of the loader's own; without workers then on a copy of the dataset.
        skip_batches: batches of the first epoch that are passed over without being made; map-style datasets only.

    >>> with contextlib.closing(WatchedBatches([1, 2])) as watched:
    ...     list(watched), [pull.first for pull in watched.pulls]
    ([1, 2], [True, False])
    """

    def __init__(
        self, batches: Iterable[Any], settings: LoaderSettings | None = None, *, skip_batches: int = 0
    ) -> None:
        self._batches = batches
        self.settings = LoaderSettings()
        self.method: str | None = None
        if isinstance(batches, DataLoader):
            self.settings = settings or settings_of(batches)
            self.method = start_method(batches)
            self._batches = _own(batches, self.settings, detach=bool(settings and not settings.num_workers))
            _skip(self._batches, skip_batches)
        self.shared_times = SharedTimes(self.settings.num_workers)
        self._timed = Timed(self.shared_times)
        if isinstance(self._batches, DataLoader):
            self._batches.collate_fn = TimedCollate(self._batches.collate_fn, self._timed)
            if self.settings.num_workers and not fetching.missing():
                self._batches.worker_init_fn = TimedStart(self._batches.worker_init_fn, self._timed)
        self.pulls: list[Pull] = []
        self._iterator: Iterator[Any] | None = None
        self._is_first = False
        self._start_s: Seconds = 0.0
        self._pids: set[int] = set()

    def __iter__(self) -> WatchedBatches:
        started = time.perf_counter()
        with _expected_warnings(), loader_code("the loader"), starting_workers(self.method or "fork"):
            self._iterator = iter(self._batches)
        self._is_first, self._start_s = True, time.perf_counter() - started
        if isinstance(self._batches, DataLoader) and not self.settings.num_workers:
            fetching.wrap_fetcher_of(self._iterator, self._timed.fetch)
        self._pids.update(loader_queue.worker_pids(self._iterator))
        return self

    def __next__(self) -> Any:
        if self._iterator is None:
            iter(self)
        ready = self.ready
        with loader_code("the loader"):
            start_s, start_cpu_s = time.perf_counter(), time.thread_time()
            batch = next(self._iterator, _ENDED)  # type: ignore[arg-type]
            end_cpu_s, end_s = time.thread_time(), time.perf_counter()
        if batch is _ENDED:
            raise StopIteration
        wait_s = end_s - start_s + (self._start_s if self._is_first else 0.0)
        self.pulls.append(Pull(wait_s, end_cpu_s - start_cpu_s, ready, self._is_first, end_s))
        self._is_first = False
        return batch

    @property
    def ready(self) -> int | None:
        """Batches that are made and not yet taken; `None` without workers, or where that cannot be told."""
        if not self.settings.num_workers:
            return None
        if self.shared_times.num_made:
            return max(0, self.shared_times.num_made - len(self.pulls))
        return loader_queue.ready_batches(self._iterator)

    @property
    def num_epochs(self) -> int:
        """Epochs that were begun."""
        return sum(pull.first for pull in self.pulls)

    def costs(self, since_s: Seconds = 0.0) -> list[BatchCost]:
        """What the batches cost that were begun since a moment; empty where it cannot be told."""
        return list(self.shared_times.costs(since_s))

    @property
    def worker_bytes(self) -> Bytes | None:
        """Memory of the workers that are alive; `None` without any."""
        return own_bytes(self._pids | set(self.shared_times.pids)) if self.settings.num_workers else None

    def close(self) -> None:
        """End the workers, also those that are busy, hang, or were started by a loader of another make."""
        iterator, self._iterator = self._iterator, None
        if isinstance(self._batches, DataLoader):
            self._batches._iterator = None  # noqa: SLF001 - the reference that keeps persistent workers alive
        try:
            if iterator is not None and iterator is not self._batches:
                loader_queue.end_workers(iterator)
        finally:
            _end_processes(self._pids | set(self.shared_times.pids))


def _own(loader: DataLoader[Any], settings: LoaderSettings, *, detach: bool) -> DataLoader[Any]:
    own = own_loader(with_settings(loader, settings))
    if detach:
        vars(own)["dataset"] = detached(loader.dataset)
    return own


def detached(dataset: Any) -> Any:
    """A copy that may be loaded from in this process without a trace in the original.

    What a dataset opens or caches on first use stays with the copy. Else workers that are started later would inherit it: an open
    file with its position, or a cache that hides what each of them would need. Datasets inside of datasets are copied too.
    """
    if not hasattr(dataset, "__dict__") or isinstance(dataset, (torch.Tensor, np.ndarray)):
        return dataset
    own = copy.copy(dataset)
    inner = vars(own)
    if "dataset" in inner:
        inner["dataset"] = detached(inner["dataset"])
    if isinstance(inner.get("datasets"), (list, tuple)):
        inner["datasets"] = [detached(one) for one in inner["datasets"]]
    return own


class _Skipping:
    """A sampler without the first of what it draws, once."""

    def __init__(self, sampler: Any, number: int) -> None:
        self._sampler = sampler
        self._number = number

    def __iter__(self) -> Iterator[Any]:
        number, self._number = self._number, 0
        return itertools.islice(iter(self._sampler), number, None)

    def __len__(self) -> int:
        return len(self._sampler)


def _skip(own: DataLoader[Any], number: int) -> None:
    if number and not isinstance(own.dataset, IterableDataset):
        name = "sampler" if own.batch_sampler is None else "batch_sampler"
        vars(own)[name] = _Skipping(getattr(own, name), number)


def _end_processes(pids: set[int]) -> None:
    children = {child.pid: child for child in psutil.Process().children()}
    alive = [children[pid] for pid in pids if pid in children]
    for stop in (None, psutil.Process.terminate, psutil.Process.kill):
        for process in alive:
            if stop is not None and process.is_running():
                stop(process)
        alive = psutil.wait_procs(alive, timeout=PATIENCE_S)[1]
        if not alive:
            return


@contextlib.contextmanager
def _expected_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        for text in _EXPECTED:
            warnings.filterwarnings("ignore", message=text)
        yield
