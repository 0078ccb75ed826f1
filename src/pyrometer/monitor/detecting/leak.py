"""What grows without end: the slope of memory, handles or queues over a long time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pyrometer.bench.autocorrelation import autocorrelation_time
from pyrometer.errors import InputError
from pyrometer.monitor.detecting.detector import Floats, Reading, registered
from pyrometer.quantity import Seconds
from pyrometer.series import theil_sen

MOST_POINTS = 120
LEAST_POINTS = 90


@registered("leak")
class Leak:
    """Growth that its interval proves; points are halved in number as time goes on, so that memory stays the same.

    Args:
        most_per_hour: growth that is tolerated, in the unit of the signal.
        settle_s: the first seconds, in which caches and pools fill.
        every_s: at most one point in this time, at the beginning.
        confidence: of the interval whose lower end is judged.
    """

    def __init__(
        self,
        most_per_hour: float,
        settle_s: Seconds = 300.0,
        every_s: Seconds = 10.0,
        confidence: float = 0.999,
    ) -> None:
        if most_per_hour <= 0 or every_s <= 0:
            raise InputError(
                f"leak: got most_per_hour={most_per_hour:g}, every_s={every_s:g}; legal is above 0"
            )
        self._most, self._settle_s, self._every_s = most_per_hour, settle_s, every_s
        self._confidence = confidence
        self._began_s: Seconds | None = None
        self._points: list[tuple[Seconds, float]] = []

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per point that is kept; the last value of a call counts."""
        if not len(values) or not np.isfinite(values[-1]):
            return
        self._began_s = at_s if self._began_s is None else self._began_s
        if at_s - self._began_s < self._settle_s:
            return
        if self._points and at_s - self._points[-1][0] < self._every_s:
            return
        self._points.append((at_s, float(values[-1])))
        if len(self._points) > MOST_POINTS:
            self._points = self._points[::2]
            self._every_s *= 2
        if len(self._points) >= LEAST_POINTS:
            yield self._reading(at_s, len(values))

    def _reading(self, at_s: Seconds, after: int) -> Reading:
        times, levels = np.asarray(self._points).T
        plain = theil_sen(times, levels, self._confidence)
        noise = autocorrelation_time(levels - plain.at * times)
        slope = theil_sen(times, levels, self._confidence, noise_time=noise)
        low, high = (
            float(np.nan_to_num(end, posinf=1e300, neginf=-1e300)) for end in (slope.low, slope.high)
        )
        evidence = f"grows by {slope.at * 3600:.4g} per hour ({low * 3600:.4g} to {high * 3600:.4g})"
        return Reading(
            at_s=at_s,
            after=after,
            score=max(low * 3600 / self._most, 0.0),
            value=slope.at * 3600,
            expected=self._most,
            evidence=evidence,
        )
