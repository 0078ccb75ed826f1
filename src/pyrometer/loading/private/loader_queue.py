"""How full the queue of a stock DataLoader iterator is, and which processes fill it.

Read from `_MultiProcessingDataLoaderIter`: `_task_info` holds a pair for a batch that came out of order and waits for its turn,
`_data_queue` what is ready to be taken, and with pinned memory `_worker_result_queue` what the pin thread has not yet taken.
"""

from __future__ import annotations

from typing import Any


def ready_batches(iterator: Any) -> int | None:
    """Batches that are made and not yet taken, those before the pin thread included.

    Returns:
        `None` for an iterator without workers, of another class, or on a system whose queues cannot be counted (macOS).
    """
    tasks, ready = getattr(iterator, "_task_info", None), getattr(iterator, "_data_queue", None)
    if not isinstance(tasks, dict) or ready is None:
        return None
    made = getattr(iterator, "_worker_result_queue", ready)
    try:
        behind = 0 if made is ready else made.qsize()
        waiting = ready.qsize() + behind
    except NotImplementedError:
        return None
    return int(waiting) + sum(len(task) == 2 for task in tuple(tasks.values()))


def worker_pids(iterator: Any) -> list[int]:
    """Process ids of the iterator's workers; none where it has none."""
    workers = getattr(iterator, "_workers", None) or []
    return [worker.pid for worker in workers if worker.pid is not None]


def end_workers(iterator: Any) -> None:
    """End the workers of an iterator, also in the middle of an epoch; for generators, what is under them too."""
    end = getattr(iterator, "_shutdown_workers", None) or getattr(iterator, "close", None)
    if end is not None:
        end()
