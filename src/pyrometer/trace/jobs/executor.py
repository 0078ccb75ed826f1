"""Where rank files are reduced: one task per file, in this process, in a pool, or wherever an `Executor` sends them."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

import msgspec

from pyrometer.errors import InputError, PyrometerError
from pyrometer.trace.jobs.job import RankFailure
from pyrometer.trace.jobs.summary import RankSummary
from pyrometer.trace.reading.read import read_trace
from pyrometer.trace.trace import RankTrace

SMALL_BYTES = 4 << 20
"""All files together, packed or not: starting processes takes about a second of each, reading so much no longer."""

FEW_FILES = 16
"""Files up to which the cache of traces keeps columns: those of more would push each other out."""

T = TypeVar("T")
Outcome: TypeAlias = "RankSummary | RankFailure"


class Executor(Protocol):
    """Runs the reduction of many files, each on its own: a pool here, or `on_cluster.RayExecutor`."""

    def map_ranks(
        self, paths: Sequence[Path], reduce: Callable[[RankTrace], T], orders: Sequence[int] | None = None
    ) -> Iterator[T | RankFailure]:
        """Read and reduce each file; in any order, one outcome per path, a failure instead of an exception.

        `orders` are the places of the files in their job, where these are not all of it.
        """
        ...


def reduce_file(
    path: Path, order: int, reduce: Callable[[RankTrace], T], *, columns: bool = True
) -> T | RankFailure:
    """Read one rank's file and reduce it: the task that an executor runs.

    Args:
        path: the file.
        order: its place among the files; the rank of a file that does not tell its own.
        reduce: a pure function, importable where the task runs.
        columns: whether its columns may be kept in the cache of traces, for who opens the file again.
    """
    try:
        trace = read_trace(path, cache="auto" if columns else None).ranks[0]
        if trace.info.rank_from == "order" and trace.info.rank != order:
            info = msgspec.structs.replace(trace.info, rank=order)
            trace = RankTrace(info, trace.tables)
        return reduce(trace)
    except (PyrometerError, OSError, MemoryError) as error:
        return RankFailure(path=str(path), message=_one_line(error))
    except Exception as error:  # noqa: BLE001  one rank's damage must not take the other ranks' results along
        return RankFailure(path=str(path), message=f"{type(error).__name__}: {_one_line(error)}")


class SerialExecutor:
    """Reduces file after file in this process."""

    def map_ranks(
        self, paths: Sequence[Path], reduce: Callable[[RankTrace], T], orders: Sequence[int] | None = None
    ) -> Iterator[T | RankFailure]:
        """See `Executor`."""
        few = len(paths) <= FEW_FILES
        return (reduce_file(path, order, reduce, columns=few) for order, path in _tasks(paths, orders))


class ProcessExecutor:
    """Reduces files in a pool of processes; at most one file per worker is open, and summaries come as they are done.

    Args:
        workers: processes; by default one per core that this process may use.

    Raises:
        InputError: fewer than one worker.
    """

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"workers: got {workers}; at least 1 is needed")
        self.workers = workers or usable_cores()
        self.columns = True

    def map_ranks(
        self, paths: Sequence[Path], reduce: Callable[[RankTrace], T], orders: Sequence[int] | None = None
    ) -> Iterator[T | RankFailure]:
        """See `Executor`. A worker that dies takes its file along, which is tried once more alone."""
        tasks = _tasks(paths, orders)
        self.columns = len(paths) <= FEW_FILES
        suspects: list[tuple[int, Path]] = []
        while tasks:
            lost: list[tuple[int, Path]] = []
            yield from self._run(tasks, reduce, min(self.workers, len(tasks)), lost)
            # A dead worker breaks the pool; what never ran is simply run again, what was running is tried alone.
            suspects += lost[: self.workers]
            tasks = lost[self.workers :]
        for order, path in suspects:
            lost = []
            yield from self._run([(order, path)], reduce, 1, lost)
            for _, dead in lost:
                yield RankFailure(
                    path=str(dead),
                    message="the process that read it died, perhaps for want of memory; a script that starts workers "
                    "needs `if __name__ == '__main__':`, or pass workers=1",
                )

    def _run(
        self,
        tasks: Sequence[tuple[int, Path]],
        reduce: Callable[[RankTrace], T],
        workers: int,
        lost: list[tuple[int, Path]],
    ) -> Iterator[T | RankFailure]:
        """Outcomes as they come; tasks that a dying worker left undone go to `lost`, those that were running first."""
        task = partial(reduce_file, reduce=reduce, columns=self.columns)
        left = iter(tasks)
        running: dict[Future[T | RankFailure], tuple[int, Path]] = {}
        # Not forked: Polars' threads do not survive a fork.
        with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
            while True:
                try:
                    for order, path in islice(left, workers - len(running)):
                        running[pool.submit(task, path, order)] = (order, path)
                except BrokenProcessPool:
                    lost += [*running.values(), (order, path), *left]
                    return
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    done_task = running.pop(future)
                    try:
                        yield future.result()
                    except BrokenProcessPool:
                        lost += [done_task, *running.values(), *left]
                        return


def _tasks(paths: Sequence[Path], orders: Sequence[int] | None) -> list[tuple[int, Path]]:
    return list(zip(range(len(paths)) if orders is None else orders, paths, strict=True))


def executor_for(paths: Sequence[Path], workers: int | None = None) -> Executor:
    """Where to reduce these files: here where they are few or small, for a process takes longer to start than to read those.

    Args:
        paths: one file per rank.
        workers: processes; by default as many as cores and files allow, 1 for none beside this one.

    Raises:
        InputError: fewer than one worker.
    """
    if workers is None and sum(path.stat().st_size for path in paths if path.is_file()) < SMALL_BYTES:
        return SerialExecutor()
    pool = ProcessExecutor(workers)
    pool.workers = min(pool.workers, len(paths))
    return SerialExecutor() if pool.workers == 1 else pool


def usable_cores() -> int:
    """Cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
