"""The compiled graphs that buckets hold: by signature, the least recently used dropped first."""

from __future__ import annotations

import itertools
import statistics
import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyrometer.quantity import Bytes, Seconds
from pyrometer.tuning.shapes.axes import Sizes
from pyrometer.tuning.shapes.isolated import IsolatedGraph

MAX_REMEMBERED = 10_000
"""Signatures without a graph whose calls are counted."""


@dataclass(eq=False)
class Bucket:
    """One graph for one set of edges.

    Attributes:
        edges: sizes that it was compiled for.
        lock: held while it is compiled and checked for the first time.
        depends: the result depends on what the padding holds, so that it is checked more often.
        lost_calls: calls that were spent on padding, in whole and parts.
        held: it was not dropped; routes lead to it only then.
        used: number of its last use, among those of all buckets.
    """

    edges: Sizes
    graph: IsolatedGraph
    lock: Any = field(default_factory=threading.Lock)
    ready: bool = False
    checked: bool = False
    depends: bool = False
    calls: int = 0
    compile_s: Seconds = 0.0
    held_bytes: Bytes = 0
    times_s: list[Seconds] = field(default_factory=list)
    lost_calls: float = 0.0
    held: bool = True
    used: int = 0
    max_error: float | None = None

    @property
    def step_s(self) -> Seconds | None:
        """Median of the timed calls."""
        return statistics.median(self.times_s) if self.times_s else None

    @property
    def lost_s(self) -> Seconds | None:
        """Time spent on padding; `None` before a call was timed."""
        step_s = self.step_s
        return None if step_s is None else step_s * self.lost_calls


class BucketStore:
    """Buckets by signature, within limits; not thread-safe by itself."""

    def __init__(self, max_graphs: int, max_bytes: Bytes | None, rare_calls: int) -> None:
        self.max_graphs = max_graphs
        self.max_bytes = max_bytes
        self.rare_calls = rare_calls
        self.evictions = 0
        self.evicted_lost_s: Seconds = 0.0
        self._buckets: dict[Hashable, Bucket] = {}
        self._uses = itertools.count(1)
        self._first: dict[Sizes, Hashable] = {}
        self._seen: Counter[Hashable] = Counter()

    def __iter__(self) -> Iterator[Bucket]:
        return iter(list(self._buckets.values()))

    def __len__(self) -> int:
        return len(self._buckets)

    @property
    def held_bytes(self) -> Bytes:
        """Memory of all buckets, as far as it grew while they were compiled."""
        return sum(bucket.held_bytes for bucket in self._buckets.values())

    def find(self, edges: Sizes, signature: Hashable) -> Bucket | None:
        """The bucket of a signature, as the most recently used."""
        bucket = self._buckets.get((edges, signature))
        if bucket is not None:
            self.use(bucket)
        return bucket

    def use(self, bucket: Bucket) -> None:
        """Note that a bucket is the most recently used; needs no lock."""
        bucket.used = next(self._uses)

    def deserves(self, edges: Sizes, signature: Hashable) -> bool:
        """Whether a signature gets a graph now: the first of its edges at once, others when they have come often enough."""
        if self._first.setdefault(edges, signature) == signature:
            return True
        if len(self._seen) >= MAX_REMEMBERED:
            self._seen.clear()
        self._seen[edges, signature] += 1
        return self._seen[edges, signature] >= self.rare_calls

    def add(self, signature: Hashable, bucket: Bucket) -> None:
        """Take a new bucket in; others may go."""
        self._buckets[bucket.edges, signature] = bucket
        self.use(bucket)
        self.trim()

    def drop(self, bucket: Bucket) -> None:
        """Take a bucket out, for whatever reason; nothing when it is out already."""
        for key, held in list(self._buckets.items()):
            if held is bucket:
                bucket.held = False
                del self._buckets[key]

    def trim(self) -> None:
        """Drop the least recently used until the limits are kept."""
        while len(self._buckets) > 1 and (
            len(self._buckets) > self.max_graphs
            or (self.max_bytes is not None and self.held_bytes > self.max_bytes)
        ):
            bucket = min(self._buckets.values(), key=lambda held: held.used)
            self.drop(bucket)
            self.evictions += 1
            self.evicted_lost_s += bucket.lost_s or 0.0
