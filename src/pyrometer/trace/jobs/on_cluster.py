"""Reducing rank files on a cluster of Ray: the tasks of the pool of processes, on machines that all see the files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pyrometer.trace.jobs.executor import FEW_FILES, reduce_file
from pyrometer.trace.jobs.job import RankFailure
from pyrometer.trace.trace import RankTrace

PER_CORE = 2
"""Tasks under way for each core of the cluster, so that none waits for the next one."""

T = TypeVar("T")


class RayExecutor:
    """Reduces files on a cluster.

    Args:
        ray: the module, connected.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        # A worker that dies takes its file along, which is tried once more.
        self._task = ray.remote(num_cpus=1, max_retries=1)(reduce_file)

    def map_ranks(
        self, paths: Sequence[Path], reduce: Callable[[RankTrace], T], orders: Sequence[int] | None = None
    ) -> Iterator[T | RankFailure]:
        """See `Executor`."""
        ray = self._ray
        most = PER_CORE * max(1, int(ray.cluster_resources().get("CPU", 1)))
        few = len(paths) <= FEW_FILES
        left = iter(zip(range(len(paths)) if orders is None else orders, paths, strict=True))
        running: dict[Any, Path] = {}
        while True:
            for order, path in islice(left, most - len(running)):
                running[self._task.remote(path, order, reduce, columns=few)] = path
            if not running:
                return
            done, _ = ray.wait(list(running))
            for reference in done:
                path = running.pop(reference)
                try:
                    yield ray.get(reference)
                except ray.exceptions.RayError as error:
                    why = " ".join(str(error).split())[:300]
                    yield RankFailure(
                        path=str(path), message=f"the worker that read it was lost twice: {why}"
                    )
