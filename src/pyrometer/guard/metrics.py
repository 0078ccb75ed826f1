"""The metrics that pairs of processes tell: what each is, and how it is read from a sample."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyrometer.guard.gate import Kind
from pyrometer.guard.pairs import Figures, Sample

Read: TypeAlias = Callable[[Figures], float | None]


@dataclass(frozen=True)
class Measure:
    """One metric.

    Attributes:
        read: its figure on one side; null where there is none.
        decisive: whether the job goes on until it is decided.
        more_is_better: as of throughput.
        is_share: compared by differences, not by ratios.
    """

    name: str
    kind: Kind
    read: Read
    decisive: bool = False
    more_is_better: bool = False
    is_share: bool = False

    def both(self, sample: Sample) -> tuple[float, float] | None:
        """The figures of base and head."""
        base, head = self.read(sample.base), self.read(sample.head)
        if base is None or head is None or (not self.is_share and min(base, head) <= 0):
            return None
        return base, head

    def worse(self, sample: Sample) -> float | None:
        """How much worse the head is: a logarithm of a ratio, or for shares a difference."""
        if self.name == "median_s":
            return sample.log_ratio
        both = self.both(sample)
        if both is None:
            return None
        if self.is_share:
            return both[1] - both[0]
        if self.name == "throughput":
            units = sample.base.finished.units_per_step, sample.head.finished.units_per_step
            return sample.log_ratio - math.log(units[1] / units[0])
        return math.log(both[1] / both[0])


def _throughput(side: Figures) -> float | None:
    """Units per second; calls have no unit worth telling."""
    units = side.finished.units_per_step
    if side.opened.unit == "calls" or side.median_s <= 0 or units <= 0:
        return None
    return units / side.median_s


MEASURES = (
    Measure("median_s", "time", lambda side: side.median_s, decisive=True),
    Measure("p95_s", "time", lambda side: side.p95_s),
    Measure("p99_s", "time", lambda side: side.p99_s),
    Measure("jitter", "time", lambda side: side.jitter),
    Measure("first_call_s", "time", lambda side: side.opened.first_call_s),
    Measure("compile_s", "time", lambda side: side.opened.compile_s),
    Measure("throughput", "time", _throughput, more_is_better=True),
    Measure("loader_share", "time", lambda side: side.finished.loader_share, is_share=True),
    Measure("allocated_bytes", "memory", lambda side: side.finished.peak_bytes, decisive=True),
    Measure("reserved_bytes", "memory", lambda side: side.finished.reserved_bytes),
    Measure("host_peak_bytes", "memory", lambda side: side.finished.host_peak_bytes),
)
"""In the order of reports. What is counted once, such as the operators of a step, is in `counting`."""


def series_of(measure: Measure, samples: Sequence[Sample]) -> list[float]:
    """How much worse the head is in each pair that has the metric."""
    return [worse for worse in map(measure.worse, samples) if worse is not None and math.isfinite(worse)]
