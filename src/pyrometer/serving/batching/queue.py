"""The queue of all buckets: who waits, which batch is next, and when to look again.

It knows no clock: whoever asks says what time it is, so that a server, a plan and a test ask the same code. Of one bucket and
priority, requests leave in the order in which they came. Nothing is in two batches, and nothing leaves but by a batch, by `cancel`
or by `expire`.

>>> queue = BatchQueue(BatchPolicy(most_rows=2, flush_idle=False), lambda bucket, rows: 0.001)
>>> [queue.offer(Waiting("short", 1, 0.0), 0.0) for _ in range(3)]
[None, None, None]
>>> batch = queue.take(0.0)
>>> batch.rows, batch.reason, queue.take(0.0), queue.next_s(0.0)
(2, 'full', None, 0.01)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

from pyrometer.quantity import Seconds
from pyrometer.serving.batching.lane import Lane
from pyrometer.serving.batching.policy import BatchPolicy
from pyrometer.serving.batching.waiting import Batch, Reason, Refusal, Waiting

Expected = Callable[[Hashable, int], Seconds]
"""How long a batch of a bucket takes with so many rows."""


class BatchQueue:
    """Bounded, with a lane per bucket.

    Args:
        policy: when batches are closed.
        expected: the service time that deadlines are held against.
    """

    def __init__(self, policy: BatchPolicy, expected: Expected) -> None:
        self.policy = policy
        self.rows = 0
        self._expected = expected
        self._lanes: dict[Hashable, Lane] = {}
        self._number = 0

    def offer(self, one: Waiting, now_s: Seconds) -> Refusal | None:
        """Let a request wait; it is refused where the queue is full or no batch could hold it."""
        if one.rows > self.policy.most_rows:
            return Refusal("too_large", math.inf)
        if self.rows + one.rows > self.policy.most_waiting:
            return Refusal("full", self.drained_in_s(now_s))
        self._number += 1
        one.number = self._number
        lane = self._lanes.get(one.bucket)
        if lane is None:
            lane = self._lanes[one.bucket] = Lane(one.bucket)
        lane.add(one)
        self.rows += one.rows
        return None

    def cancel(self, one: Waiting) -> bool:
        """Let a request leave whose client has gone; False where it waits no longer."""
        if not one.is_waiting:
            return False
        self._leave(self._lanes[one.bucket], one)
        self._drop_empty(self._lanes[one.bucket])
        return True

    def expire(self, now_s: Seconds) -> list[Waiting]:
        """The requests whose deadline has passed, which leave before they cost anything."""
        gone: list[Waiting] = []
        for lane in list(self._lanes.values()):
            expired = lane.expire(now_s)
            if expired:
                self.rows -= sum(one.rows for one in expired)
                gone += expired
                self._drop_empty(lane)
        return gone

    def take(self, now_s: Seconds, *, is_draining: bool = False) -> Batch | None:
        """The next batch for a model that is free; None where none is to be closed yet.

        Ask `expire` before: what it would return may be in the batch.

        Args:
            now_s: what time it is.
            is_draining: nothing more will come, so nobody is waited for.
        """
        chosen: tuple[tuple[bool, float, float, int], Lane, Reason] | None = None
        for lane in self._lanes.values():
            reason = "drain" if is_draining else self._reason(lane, now_s)
            if reason is not None:
                rank = self._rank(lane, now_s)
                if chosen is None or rank < chosen[0]:
                    chosen = (rank, lane, reason)
        return None if chosen is None else self._closed(chosen[1], chosen[2], now_s)

    def next_s(self, now_s: Seconds) -> Seconds:
        """When to look again if nothing comes: a batch is due or a deadline passes; infinite where nothing waits."""
        return max(
            min((self._due_s(lane)[0] for lane in self._lanes.values()), default=math.inf),
            now_s,
        )

    def next_deadline_s(self) -> Seconds:
        """When the earliest deadline of all passes."""
        return min((lane.earliest_deadline_s() for lane in self._lanes.values()), default=math.inf)

    def drained_in_s(self, _now_s: Seconds) -> Seconds:
        """How long the model needs for what waits."""
        most = self.policy.most_rows
        return sum(
            self._expected(lane.bucket, min(lane.rows, most)) * max(lane.rows / most, 1.0)
            for lane in self._lanes.values()
        )

    def _reason(self, lane: Lane, now_s: Seconds) -> Reason | None:
        if lane.rows >= self.policy.most_rows:
            return "full"
        if lane.oldest().arrived_s + self.policy.starvation_s <= now_s:
            return "starved"
        due_s, reason = self._due_s(lane)
        if due_s <= now_s:
            return reason
        return "idle" if self.policy.flush_idle else None

    def _due_s(self, lane: Lane) -> tuple[Seconds, Reason]:
        waited_s = lane.oldest().arrived_s + min(self.policy.wait_s, self.policy.starvation_s)
        deadline_s = lane.earliest_deadline_s()
        if deadline_s < math.inf:
            deadline_s -= self._expected(lane.bucket, min(lane.rows, self.policy.most_rows))
        return (deadline_s, "deadline") if deadline_s < waited_s else (waited_s, "waited")

    def _rank(self, lane: Lane, now_s: Seconds) -> tuple[bool, float, float, int]:
        """Who starves goes first, then priority, then the earliest deadline, then who came first."""
        oldest = lane.oldest()
        if oldest.arrived_s + self.policy.starvation_s <= now_s:
            return (False, 0.0, 0.0, oldest.number)
        first = lane.first(-math.inf)
        assert first is not None
        return (True, first.priority, lane.earliest_deadline_s(), oldest.number)

    def _closed(self, lane: Lane, reason: Reason, now_s: Seconds) -> Batch:
        taken: list[Waiting] = []
        rows = 0
        starving_since_s = now_s - self.policy.starvation_s
        while (one := lane.first(starving_since_s)) is not None:
            if rows + one.rows > self.policy.most_rows:
                break  # whoever came later does not overtake it
            self._leave(lane, one)
            rows += one.rows
            taken.append(one)
        self._drop_empty(lane)
        return Batch(lane.bucket, taken, rows, reason)

    def _leave(self, lane: Lane, one: Waiting) -> None:
        lane.remove(one)
        self.rows -= one.rows

    def _drop_empty(self, lane: Lane) -> None:
        if not lane.rows:
            del self._lanes[lane.bucket]
