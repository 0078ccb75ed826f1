"""One course of requests through the queue, on a simulated clock, with service times that were measured.

It is the queue of the server that decides here; only the model is replaced, by the times that its runs took.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pyrometer.quantity import Seconds
from pyrometer.serving.batching.policy import BatchPolicy
from pyrometer.serving.batching.queue import BatchQueue
from pyrometer.serving.batching.service_times import Pace, ServicePoint, ServiceTimes
from pyrometer.serving.batching.waiting import Batch, Waiting
from pyrometer.serving.planning.arrivals import Arrival, Generator
from pyrometer.serving.planning.course import Course

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Shaped(NamedTuple):
    """How a policy treats sizes.

    Attributes:
        bucket: what a request shares a batch with.
        computed: of a batch, which measured bucket it runs as, and how many elements of each row are computed.
        real: elements of a row of a request.
    """

    bucket: Callable[[Arrival], str]
    computed: Callable[[Batch], tuple[str, float]]
    real: Callable[[Arrival], float]


class Replayed(NamedTuple):
    """What came of one course."""

    latencies_s: Floats
    num_refused: int
    num_batches: int
    rows: int
    real: float
    padded: float
    busy_s: Seconds
    span_s: Seconds


class ServiceDraws:
    """Service times at random, as they were measured; between two sizes of a batch, on the line through equal quantiles.

    Args:
        points: what was measured.
        row_edges: numbers of rows that the model is called with.
        paces: how batches followed each other; without, their times are independent.
    """

    def __init__(
        self,
        points: Sequence[ServicePoint],
        row_edges: Sequence[int] = (),
        paces: Sequence[Pace] = (),
    ) -> None:
        self._samples: dict[str, list[tuple[int, Floats]]] = {}
        for point in sorted(points, key=lambda point: (point.bucket, point.rows)):
            taken = np.sort(np.array(point.samples_s, np.float64))
            self._samples.setdefault(point.bucket, []).append((point.rows, taken))
        self._row_edges = row_edges
        self._paces = Course(paces, [one.at_once for one in paces]) if paces else None
        self.times = ServiceTimes.of(points)

    def renew(self, random: Generator) -> None:
        """Begin another course."""
        if self._paces is not None:
            self._paces.renew(random)

    def next_pace(self, random: Generator, *, at_once: bool) -> Pace:
        """That of the next batch."""
        if self._paces is None:
            return Pace(0.0, random.random())
        return self._paces.next(random, at_once=at_once)

    def service_s(self, bucket: str, rows: int, share: float) -> Seconds:
        """What a batch takes that is slower than this share of those of its size."""
        rows = self.padded_rows(rows)
        curve = self._samples.get(bucket) or self._samples[max(self._samples)]
        place = min(bisect.bisect_left(curve, rows, key=lambda one: one[0]), len(curve) - 1)
        high, high_s = curve[place]
        if rows >= high or place == 0:
            return _at(high_s, share) * max(rows / high, 1.0)
        low, low_s = curve[place - 1]
        weight = (rows - low) / (high - low)
        return (1 - weight) * _at(low_s, share) + weight * _at(high_s, share)

    def padded_rows(self, rows: int) -> int:
        """How many rows the model is called with."""
        return next((edge for edge in self._row_edges if edge >= rows), rows)


def _at(sorted_s: Floats, share: float) -> float:
    return float(sorted_s[min(int(share * len(sorted_s)), len(sorted_s) - 1)])


def replay(
    arrivals: Sequence[Arrival],
    policy: BatchPolicy,
    shaped: Shaped,
    draws: ServiceDraws,
    random: Generator,
) -> Replayed:
    """Let requests arrive, and see how long each waits for its answer."""
    draws.renew(random)
    queue = BatchQueue(policy, draws.times.expected)
    latencies: list[Seconds] = []
    refused = batches = rows = at = 0
    real = padded = busy_s = now_s = free_s = 0.0
    ended_s = -math.inf
    pace: Pace | None = None
    while at < len(arrivals) or queue.rows:
        while at < len(arrivals) and arrivals[at].at_s <= now_s:
            one = arrivals[at]
            at += 1
            waiting = Waiting(shaped.bucket(one), one.rows, one.at_s, payload=one)
            refused += queue.offer(waiting, now_s) is not None
        next_s = arrivals[at].at_s if at < len(arrivals) else math.inf
        if now_s < free_s:
            now_s = min(next_s, free_s)
            continue
        if (
            pace is None and queue.rows
        ):  # the loop gets to it a little later, and what comes until then is in it
            pace = draws.next_pace(random, at_once=now_s == ended_s)
            free_s = now_s + pace.gathering_s
            continue
        batch = queue.take(now_s)
        if batch is None or pace is None:
            now_s = min(next_s, queue.next_s(now_s))
            continue
        bucket, volume = shaped.computed(batch)
        took_s = draws.service_s(bucket, batch.rows, pace.rank)
        pace = None
        free_s = ended_s = now_s + took_s
        busy_s += took_s
        batches += 1
        rows += batch.rows
        real += sum(waiting.rows * shaped.real(waiting.payload) for waiting in batch.requests)
        padded += draws.padded_rows(batch.rows) * volume
        latencies += [free_s - waiting.arrived_s for waiting in batch.requests]
    span_s = max(free_s, now_s) - (arrivals[0].at_s if arrivals else 0.0)
    return Replayed(np.array(latencies), refused, batches, rows, real, padded, busy_s, span_s)
