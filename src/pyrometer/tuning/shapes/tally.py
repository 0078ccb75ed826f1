"""Counting what buckets do, from any thread."""

from __future__ import annotations

import math
import threading
from collections import Counter

from pyrometer.quantity import Seconds
from pyrometer.tuning.shapes.axes import Axes, Sizes
from pyrometer.tuning.shapes.record import BucketStatistics, BucketUse, WayCost
from pyrometer.tuning.shapes.rivals import best_way
from pyrometer.tuning.shapes.store import Bucket, BucketStore

MAX_DISTINCT = 100_000
"""Different sizes that are remembered."""


class Tally:
    """What happened so far."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count: Counter[str] = Counter()
        self._elements = [0, 0]
        self._seen: Counter[Sizes] = Counter()
        self.copying_s: Seconds = 0.0
        self.compile_s: Seconds = 0.0
        self.refusals: list[str] = []
        self.notes: list[str] = []
        self.ways: list[WayCost] = []

    def add(self, what: str) -> int:
        """Count one more; how many it is."""
        with self._lock:
            self._count[what] += 1
            return self._count[what]

    def note(self, text: str) -> None:
        """Tell something, once."""
        with self._lock:
            if text not in self.notes:
                self.notes.append(text)

    def see(self, sizes: Sizes) -> int:
        """Count a call with these sizes; which call it is."""
        with self._lock:
            return self._see(sizes)

    def _see(self, sizes: Sizes) -> int:
        if sizes in self._seen or len(self._seen) < MAX_DISTINCT:
            self._seen[sizes] += 1
        self._count["calls"] += 1
        return self._count["calls"]

    def seen(self) -> Counter[Sizes]:
        """How often each combination of sizes was called so far."""
        with self._lock:
            return self._seen.copy()

    def pass_on(self) -> None:
        """Count a call that no bucket was meant for, whatever its sizes."""
        with self._lock:
            self._count["calls"] += 1
            self._count["fallback"] += 1

    def enter(self, bucket: Bucket) -> None:
        """Count a call of a bucket."""
        with self._lock:
            bucket.calls += 1

    def compiled(self, bucket: Bucket, what: str) -> None:
        """Count a bucket that was compiled."""
        with self._lock:
            self._count[what] += 1
            self.compile_s += bucket.compile_s

    def hit(self, bucket: Bucket, sizes: Sizes, lost: float, copying_s: Seconds) -> None:
        """Note all of a call that found its bucket by a route: that it came, and what `serve` notes."""
        with self._lock:
            self._see(sizes)
            self._count["hits"] += 1
            bucket.calls += 1
            self._serve(bucket, sizes, lost, copying_s)

    def serve(self, bucket: Bucket, sizes: Sizes, lost: float, copying_s: Seconds) -> None:
        """Note a call that a bucket served: its true sizes, the share of it that was lost to padding, and time spent on copying."""
        with self._lock:
            self._serve(bucket, sizes, lost, copying_s)

    def _serve(self, bucket: Bucket, sizes: Sizes, lost: float, copying_s: Seconds) -> None:
        bucket.lost_calls += lost
        self._elements[0] += math.prod(sizes)
        self._elements[1] += math.prod(bucket.edges)
        self.copying_s += copying_s

    def statistics(self, store: BucketStore, axes: Axes) -> BucketStatistics:
        """As a record."""
        buckets = list(store)
        lost = [bucket.lost_s for bucket in buckets if bucket.lost_s is not None]
        errors = [bucket.max_error for bucket in buckets if bucket.max_error is not None]
        steps = {way.name: way.step_s for way in self.ways if way.step_s is not None}
        with self._lock:
            count = self._count
            real, padded = self._elements
            compiled = count["misses"] + count["precompiled"]
            return BucketStatistics(
                calls=count["calls"],
                hits=count["hits"],
                misses=count["misses"],
                warmup_calls=count["warmup"],
                fallback_calls=count["fallback"],
                cropped_calls=count["cropped"],
                evictions=store.evictions,
                num_graphs=len(buckets),
                precompiled=count["precompiled"],
                distinct_sizes=len(self._seen),
                recompiles_avoided=max(len(self._seen) - compiled, 0) if compiled else 0,
                padding_share=1 - real / padded if padded else 0.0,
                lost_s=sum(lost) + store.evicted_lost_s if lost else None,
                copying_s=self.copying_s,
                compile_s=self.compile_s,
                checks=count["checks"],
                max_error=max(errors, default=None),
                held_bytes=store.held_bytes,
                refusals=list(self.refusals),
                notes=list(self.notes),
                buckets=[_use(bucket, axes) for bucket in buckets],
                ways=list(self.ways),
                recommended=best_way(steps) if steps else None,
            )


def _use(bucket: Bucket, axes: Axes) -> BucketUse:
    return BucketUse(
        edges=axes.by_name(bucket.edges),
        calls=bucket.calls,
        compile_s=bucket.compile_s,
        step_s=bucket.step_s,
        held_bytes=bucket.held_bytes,
        max_error=bucket.max_error,
    )
