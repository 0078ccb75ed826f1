"""The thread that the model runs in.

The number of threads is set inside of it: what the main thread sets does not hold for OpenMP in another one, where an extra worker
then takes twice the time and more. A thread that hangs in a model cannot be ended; it is left behind, and another takes over.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from pyrometer.quantity import Seconds
from pyrometer.workload.failure import described


class Done(NamedTuple):
    """What came of one piece of work: its result, or why there is none."""

    result: Any
    failure: str | None
    took_s: Seconds


class Worker:
    """Runs one thing at a time, in the order given.

    Args:
        threads: that torch computes with, in this thread; None leaves it.
        on_start: called in the thread before anything else, such as to enter settings of the model.
    """

    def __init__(self, threads: int | None = None, on_start: Callable[[], None] = lambda: None) -> None:
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Callable[[Done], None]] | None] = (
            queue.SimpleQueue()
        )
        self._threads = threads
        self._on_start = on_start
        self._thread = threading.Thread(target=self._run, name="pyrometer-model", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], Any], on_done: Callable[[Done], None]) -> None:
        """Run something; `on_done` is called in the thread."""
        self._work.put((work, on_done))

    def call(self, work: Callable[[], Any]) -> Any:
        """Run something, and wait for it.

        Raises:
            BaseException: whatever it raises.
        """
        done: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

        def kept() -> None:
            try:
                done.put((work(), None))
            except BaseException as error:  # noqa: BLE001 - raised by the caller's thread
                done.put((None, error))

        self.submit(kept, lambda _: None)
        result, error = done.get()
        if error is not None:
            raise error
        return result

    def end(self, timeout_s: Seconds = 5.0) -> None:
        """Let the thread end once it has done what waits."""
        self.leave()
        self._thread.join(timeout_s)

    def leave(self) -> None:
        """Let the thread end by itself, whenever that is."""
        self._work.put(None)

    def again(self) -> Worker:
        """Another thread like this one, which is left behind."""
        self.leave()
        return Worker(self._threads, self._on_start)

    def begin_with(self, threads: int, on_start: Callable[[], None]) -> None:
        """What this thread, and any that takes over, begins with; to be called in it."""
        self._threads, self._on_start = threads, on_start
        torch.set_num_threads(threads)
        on_start()

    def _run(self) -> None:
        if self._threads is not None:
            torch.set_num_threads(self._threads)
        self._on_start()
        while (item := self._work.get()) is not None:
            work, on_done = item
            started = time.perf_counter()
            try:
                done = Done(work(), None, time.perf_counter() - started)
            except BaseException as error:  # noqa: BLE001 - a model may raise anything, and others wait behind it
                done = Done(None, described(error), time.perf_counter() - started)
            on_done(done)
