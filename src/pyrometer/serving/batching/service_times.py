"""How long a batch takes: a curve per bucket, measured before the first request, and corrected by what batches really take."""

from __future__ import annotations

import bisect
from collections.abc import Hashable, Mapping, Sequence
from typing import Annotated, NamedTuple

import numpy as np

from pyrometer.quantity import Seconds
from pyrometer.record import Record, doc

WEIGHT = 0.1
"""Of the newest batch in the correction."""


class ServicePoint(Record, frozen=True, kw_only=True):
    """Runs of the model at one size of a batch."""

    bucket: Annotated[str, doc("shapes that share a batch; empty where all are alike")]
    rows: int
    samples_s: Annotated[list[Seconds], doc("of one run each")]

    @property
    def median_s(self) -> Seconds:
        """Half of the runs took no longer."""
        return float(np.median(self.samples_s))


class Pace(NamedTuple):
    """How quick machine and loop were at one batch.

    Attributes:
        gathering_s: from when the batch could have started until it did; what came meanwhile is in it.
        rank: of its service time among those of equal size, from 0 to 1.
        at_once: whether it waited for the batch before; after a rest caches are cold and threads sleep.
    """

    gathering_s: Seconds
    rank: float
    at_once: bool = False


class ServiceTimes:
    """What is expected of a batch; between two sizes that were measured, on the line through both.

    >>> times = ServiceTimes({"": {1: 0.001, 5: 0.003}})
    >>> times.expected("", 3), times.expected("unknown", 1)
    (0.002, 0.001)
    """

    def __init__(self, curves: Mapping[Hashable, Mapping[int, Seconds]]) -> None:
        self._curves = {bucket: sorted(curve.items()) for bucket, curve in curves.items() if curve}
        self._corrections: dict[Hashable, float] = {}

    @classmethod
    def of(cls, points: Sequence[ServicePoint]) -> ServiceTimes:
        """From runs that were measured."""
        curves: dict[Hashable, dict[int, Seconds]] = {}
        for point in points:
            curves.setdefault(point.bucket, {})[point.rows] = point.median_s
        return cls(curves)

    def expected(self, bucket: Hashable, rows: int) -> Seconds:
        """Of a bucket that was not measured, what the dearest takes; 0 where nothing was."""
        curve = self._curves.get(bucket)
        if curve is None:
            return max((_on(curve, rows) for curve in self._curves.values()), default=0.0)
        return _on(curve, rows) * self._corrections.get(bucket, 1.0)

    def note(self, bucket: Hashable, rows: int, took_s: Seconds) -> None:
        """Learn from a batch."""
        curve = self._curves.get(bucket)
        if curve is None:
            self._curves[bucket] = [(rows, took_s)]
            return
        planned = _on(curve, rows)
        if planned > 0:
            known = self._corrections.get(bucket, 1.0)
            self._corrections[bucket] = known + WEIGHT * (took_s / planned - known)


def _on(curve: list[tuple[int, Seconds]], rows: int) -> Seconds:
    place = bisect.bisect_left(curve, (rows,))
    if place == len(curve):  # beyond the last: in proportion
        most, took_s = curve[-1]
        return took_s * rows / most
    if curve[place][0] == rows or place == 0:
        return curve[place][1]
    (low, low_s), (high, high_s) = curve[place - 1 : place + 1]
    return low_s + (high_s - low_s) * (rows - low) / (high - low)
