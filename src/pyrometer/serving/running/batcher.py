"""From requests to batches to answers: the queue on the clock of an event loop, and the model in its thread.

Everything here runs in the thread of the loop but `answered` and `compare`, which run in those of the models. Times are read from the monotonic clock, since
that of uvloop has milliseconds only. A request that was accepted gets one
answer: outputs, an error, or the word that its deadline has passed.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Hashable
from time import monotonic
from typing import NamedTuple, Protocol, TypeAlias

from pyrometer.quantity import Seconds
from pyrometer.serving.batching.policy import USUAL, BatchPolicy
from pyrometer.serving.batching.queue import BatchQueue
from pyrometer.serving.batching.service_times import ServiceTimes
from pyrometer.serving.batching.waiting import Batch, Refusal, Waiting
from pyrometer.serving.running.program import Program, Rows, Served, answered
from pyrometer.serving.running.shadow import Compared, compare
from pyrometer.serving.running.shaping import told
from pyrometer.serving.running.versions import Versions
from pyrometer.serving.running.worker import Done
from pyrometer.tuning.shapes.axes import Sizes
from pyrometer.tuning.trials.gate import TOLERANCE

MOST_LEFT_BEHIND = 3
"""Threads that hang in the model before the server says that it is dead."""


class Bucket(NamedTuple):
    """What may share a batch."""

    sizes: Sizes
    version: str | None = None


class RequestError(Exception):
    """A request that gets no outputs."""

    def __init__(self, status: int, text: str, retry_after_s: Seconds | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after_s = retry_after_s


Outcome: TypeAlias = Served | RequestError
"""What becomes of a request that was accepted."""
OnOutcome: TypeAlias = Callable[[Outcome], None]
"""Is told once, in the loop; may not raise, for the rest of a batch comes after it."""


class Ended(NamedTuple):
    """A batch that has run, for whoever counts."""

    batch: Batch
    program: Program
    took_s: Seconds
    started_s: Seconds
    ended_s: Seconds
    answers: list[Served]


class Observer(Protocol):
    """Is told what happens; nothing of it may take long."""

    def batch_ended(self, ended: Ended, num_waiting: int) -> None:
        """A batch has run."""

    def refused(self, kind: str) -> None:
        """A request was refused, expired or was cancelled."""

    def shadowed(self, compared: Compared) -> None:
        """A batch has run in the shadow, too."""


class Batcher:
    """Takes requests, and lets the model answer them in batches.

    Args:
        versions: of the model.
        policy: when batches are closed.
        times: what batches are expected to take.
        limit_s: that a batch may take before it counts as hanging.
        observer: is told.
        tolerance: largest relative difference of a shadow's outputs that agree.
    """

    def __init__(
        self,
        versions: Versions,
        policy: BatchPolicy,
        times: ServiceTimes,
        *,
        limit_s: Seconds,
        observer: Observer,
        tolerance: float = TOLERANCE,
    ) -> None:
        self.versions = versions
        self.is_draining = False
        self.num_left_behind = 0
        self._times = times
        self._queue = BatchQueue(policy, self._expected)
        self._is_shadow_busy = False
        self._limit_s = limit_s
        self._observer = observer
        self._tolerance = tolerance
        self._loop = asyncio.get_running_loop()
        self._running: tuple[Batch, Program] | None = None
        self._number = 0
        self._is_pump_due = False
        self._rows_seen = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_s = math.inf
        self._watchdog: asyncio.TimerHandle | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def num_waiting(self) -> int:
        """Rows in the queue."""
        return self._queue.rows

    @property
    def is_alive(self) -> bool:
        """Whether the model can still be asked."""
        return self.num_left_behind < MOST_LEFT_BEHIND

    def submit(
        self,
        rows: Rows,
        bucket: Bucket,
        on_outcome: OnOutcome,
        *,
        timeout_s: Seconds = math.inf,
        priority: int = USUAL,
    ) -> Waiting:
        """Let a request wait.

        Args:
            rows: of the request.
            bucket: what may share its batch.
            on_outcome: is told what becomes of it, unless it is cancelled.
            timeout_s: after which its answer is worth nothing.
            priority: 1 is the most urgent.

        Raises:
            RequestError: it is refused.
        """
        if self.is_draining or not self.is_alive:
            why = "the server is shutting down" if self.is_draining else "the model hangs"
            raise RequestError(503, f"{why}; send the request to another replica", 1.0)
        now_s = monotonic()
        waiting = Waiting(
            bucket,
            rows.rows,
            now_s,
            deadline_s=now_s + timeout_s,
            priority=priority,
            payload=(rows, on_outcome),
        )
        refusal = self._queue.offer(waiting, now_s)
        if refusal is not None:
            self._observer.refused(refusal.kind)
            raise self._refused(refusal, rows.rows)
        self._idle.clear()
        self._pump_soon()
        if timeout_s < math.inf:
            self._arm(waiting.deadline_s)
        return waiting

    def cancel(self, waiting: Waiting) -> bool:
        """The client has gone: its request costs nothing; False where it is running already, and has its outcome yet to come."""
        if not self._queue.cancel(waiting):
            return False
        self._observer.refused("cancelled")
        self._settle()
        return True

    async def drain(self) -> None:
        """Accept nothing more, and return when every accepted request has its answer."""
        self.is_draining = True
        self._pump_soon()
        await self._idle.wait()

    def close(self) -> None:
        """Wait for nothing any more."""
        for timer in (self._timer, self._watchdog):
            if timer is not None:
                timer.cancel()

    def _refused(self, refusal: Refusal, rows: int) -> RequestError:
        most = self._queue.policy
        if refusal.kind == "too_large":
            return RequestError(400, f"batch: got {rows} rows; at most {most.most_rows} in one request")
        return RequestError(
            429,
            f"the queue is full: {self._queue.rows} of {most.most_waiting} rows wait; try again later",
            refusal.retry_after_s,
        )

    def _expected(self, bucket: Hashable, rows: int) -> Seconds:
        assert isinstance(bucket, Bucket)
        return self._times.expected(told(bucket.sizes), rows)

    def _pump_soon(self) -> None:
        """Close a batch once the loop has read all that has come: as long as each turn brings more, one more is waited for."""
        if not self._is_pump_due:
            self._is_pump_due = True
            self._rows_seen = self._queue.rows
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        rows = self._queue.rows
        if self._running is None and self._rows_seen < rows < self._queue.policy.most_rows:
            self._rows_seen = rows
            self._loop.call_soon(self._turn)
        else:
            self._pump()

    def _pump(self) -> None:
        self._is_pump_due = False
        now_s = monotonic()
        for one in self._queue.expire(now_s):
            self._observer.refused("expired")
            one.payload[1](RequestError(504, "the deadline of the request passed before the model was free"))
        if self._running is None:
            batch = self._queue.take(now_s, is_draining=self.is_draining)
            if batch is not None:
                self._dispatch(batch)
        self._settle()
        next_s = self._queue.next_s(now_s) if self._running is None else self._queue.next_deadline_s()
        if next_s < math.inf:
            self._arm(next_s)

    def _arm(self, at_s: Seconds) -> None:
        """Look again then, unless a look is due before."""
        if self._timer is not None:
            if self._timer_s <= at_s:
                return
            self._timer.cancel()
        self._timer_s = at_s
        self._timer = self._loop.call_later(max(at_s - monotonic(), 0.0), self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self._pump_soon()

    def _settle(self) -> None:
        if self._running is None and not self._queue.rows:
            self._idle.set()

    def _dispatch(self, batch: Batch) -> None:
        assert isinstance(batch.bucket, Bucket)
        program = self.versions.get(batch.bucket.version)
        self._number += 1
        number = self._number
        self._running = (batch, program)
        started_s = monotonic()
        sizes = batch.bucket.sizes
        requests: list[Rows] = [one.payload[0] for one in batch.requests]

        def on_done(done: Done) -> None:
            self._loop.call_soon_threadsafe(self._finish, number, started_s, done)

        program.worker.submit(lambda: answered(program, requests, sizes), on_done)
        self._watchdog = self._loop.call_later(self._limit_s, self._hang, number)

    def _finish(self, number: int, started_s: Seconds, done: Done) -> None:
        if number != self._number or self._running is None:
            return  # it was given up, and its requests have their answers
        ended_s = monotonic()
        batch, program = self._running
        self._running = None
        assert self._watchdog is not None
        self._watchdog.cancel()
        self._pump_soon()
        answers: list[Served] = done.result or [
            Served([], done.failure or "the model gave nothing", program.version, []) for _ in batch.requests
        ]
        for one, answer in zip(batch.requests, answers, strict=True):
            one.payload[1](answer)
        assert isinstance(batch.bucket, Bucket)
        self._times.note(told(batch.bucket.sizes), program.padded_rows(batch.rows), done.took_s)
        ended = Ended(batch, program, done.took_s, started_s, ended_s, answers)
        self._observer.batch_ended(ended, self._queue.rows)
        self._run_shadow(batch, answers)

    def _run_shadow(self, batch: Batch, answers: list[Served]) -> None:
        """The same batch in the shadow version, one at a time in a thread of its own; nobody gets what comes of it."""
        assert isinstance(batch.bucket, Bucket)
        if self._is_shadow_busy or self.is_draining or batch.bucket.version is not None:
            return
        shadow = self.versions.choose_shadow()
        if shadow is None:
            return
        other = self.versions.get(shadow)
        requests, sizes = [one.payload[0] for one in batch.requests], batch.bucket.sizes

        def on_done(done: Done) -> None:
            self._loop.call_soon_threadsafe(self._end_shadow, done)

        self._is_shadow_busy = True
        other.worker.submit(lambda: compare(other, requests, sizes, answers, self._tolerance), on_done)

    def _end_shadow(self, done: Done) -> None:
        self._is_shadow_busy = False
        self._observer.shadowed(done.result or Compared(failure=done.failure))

    def _hang(self, number: int) -> None:
        if number != self._number or self._running is None:
            return
        batch, program = self._running
        self._running = None
        self._number += 1
        self.num_left_behind += 1
        failure = f"the model did not answer within {self._limit_s:g} s"
        answers = [Served([], failure, program.version, []) for _ in batch.requests]
        for one in batch.requests:
            one.payload[1](RequestError(504, failure))
        now_s = monotonic()
        ended = Ended(batch, program, self._limit_s, now_s - self._limit_s, now_s, answers)
        self._observer.batch_ended(ended, self._queue.rows)
        program.worker = program.worker.again()
        if not self.is_alive:
            self._give_up()
        self._pump()

    def _give_up(self) -> None:
        """Nobody would answer those that wait."""
        error = RequestError(503, "the model hangs; send the request to another replica", 1.0)
        while (batch := self._queue.take(monotonic(), is_draining=True)) is not None:
            for one in batch.requests:
                one.payload[1](error)
