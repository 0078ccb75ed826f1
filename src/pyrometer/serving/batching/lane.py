"""The requests of one bucket: by priority, in the order in which they came."""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Hashable

from pyrometer.quantity import Seconds
from pyrometer.serving.batching.waiting import Waiting


class Lane:
    """One queue; leaving it from anywhere costs the same."""

    def __init__(self, bucket: Hashable) -> None:
        self.bucket = bucket
        self.rows = 0
        self._levels: dict[int, OrderedDict[int, Waiting]] = {}
        self._deadlines: list[tuple[Seconds, int, Waiting]] = []

    def add(self, one: Waiting) -> None:
        """Let a request wait behind those of its priority."""
        level = self._levels.get(one.priority)
        if level is None:
            level = self._levels[one.priority] = OrderedDict()
        level[one.number] = one
        self.rows += one.rows
        one.is_waiting = True
        if one.deadline_s < math.inf:
            heapq.heappush(self._deadlines, (one.deadline_s, one.number, one))

    def remove(self, one: Waiting) -> None:
        """Let a request leave."""
        level = self._levels[one.priority]
        del level[one.number]
        if not level:
            del self._levels[one.priority]
        self.rows -= one.rows
        one.is_waiting = False

    def oldest(self) -> Waiting:
        """The request that waits longest; there is one, or the queue would have dropped the lane."""
        heads = self._heads()
        return heads[0] if len(heads) == 1 else min(heads, key=lambda head: head.number)

    def first(self, starving_since_s: Seconds) -> Waiting | None:
        """Who is next: the oldest if it starves, otherwise the most urgent."""
        heads = self._heads()
        if len(heads) < 2:
            return heads[0] if heads else None
        oldest = min(heads, key=lambda head: head.number)
        return oldest if oldest.arrived_s <= starving_since_s else heads[0]

    def earliest_deadline_s(self) -> Seconds:
        """Of those that wait; infinite without any."""
        while self._deadlines and not self._deadlines[0][2].is_waiting:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else math.inf

    def expire(self, now_s: Seconds) -> list[Waiting]:
        """Let those leave whose deadline has passed."""
        gone: list[Waiting] = []
        while self.earliest_deadline_s() <= now_s:
            one = self._deadlines[0][2]
            self.remove(one)
            gone.append(one)
        return gone

    def _heads(self) -> list[Waiting]:
        """The oldest of each priority, the most urgent first; nearly always there is one priority."""
        levels = self._levels
        order = sorted(levels) if len(levels) > 1 else levels
        return [next(iter(levels[level].values())) for level in order]
