"""Values far from normal: by standard deviations, by medians, or smoothed; for signals of one value per tick."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator

import numpy as np

from pyrometer.monitor.detecting.baseline import MAD
from pyrometer.monitor.detecting.detector import Blocks, Floats, Reading, registered
from pyrometer.quantity import Seconds


@registered("sigma")
class Sigma:
    """Distance from a baseline of the last values that were normal, in their standard deviations or robustly.

    Args:
        sigmas: at this distance the alarm is due.
        window: values that make the baseline.
        robust: whether it is their median and median absolute deviation.
        block: values of which the median is judged.
    """

    def __init__(self, sigmas: float = 5.0, window: int = 120, robust: bool = False, block: int = 1) -> None:
        self._sigmas, self._robust = sigmas, robust
        self._normal: deque[float] = deque(maxlen=window)
        self._warm_up = min(window, 30)
        self._blocks = Blocks(block)

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per block after warm-up; what is over the limit is not learned."""
        for after, block in self._blocks.cut(values):
            value, score = float(np.median(block)), 0.0
            if len(self._normal) >= self._warm_up:
                centre, spread = self._level()
                score = abs(value - centre) / spread / self._sigmas
                evidence = f"{value:.4g}, normal is {centre:.4g} ± {spread:.2g}"
                yield Reading(
                    at_s=at_s, after=after, score=score, value=value, expected=centre, evidence=evidence
                )
            if score < 1:
                self._normal.append(value)

    def _level(self) -> tuple[float, float]:
        normal = np.asarray(self._normal)
        centre = float(np.median(normal) if self._robust else normal.mean())
        wide = MAD * float(np.median(np.abs(normal - centre))) if self._robust else float(normal.std(ddof=1))
        return centre, max(wide, 1e-6 * abs(centre), 1e-300)


@registered("robust-z")
def robust_z(sigmas: float = 6.0, window: int = 120, block: int = 1) -> Sigma:
    """Distance from the median of the last normal values, in median absolute deviations."""
    return Sigma(sigmas, window, robust=True, block=block)


@registered("ewma")
class Ewma:
    """Exponentially weighted mean and variance; a value is judged before it is taken into either.

    The textbook takes the value in first: a spike then widens the very variance that it is divided by, and hides.

    Args:
        weight: of a new value.
        sigmas: at this distance the alarm is due.
        warm_up: values before anything is judged.
    """

    def __init__(self, weight: float = 0.05, sigmas: float = 5.0, warm_up: int = 60) -> None:
        self._weight, self._sigmas, self._warm_up = weight, sigmas, warm_up
        self._seen, self._mean, self._variance = 0, 0.0, 0.0

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per value after warm-up."""
        for after, block in Blocks(1).cut(values):
            value = float(block[0])
            away = value - self._mean
            sigma = max(math.sqrt(self._variance), 1e-6 * abs(self._mean), 1e-300)
            score = abs(away) / sigma / self._sigmas
            if self._seen >= self._warm_up:
                evidence = f"{value:.4g}, smoothed {self._mean:.4g} ± {sigma:.2g}"
                yield Reading(
                    at_s=at_s, after=after, score=score, value=value, expected=self._mean, evidence=evidence
                )
            if self._seen < self._warm_up or score < 1:
                self._take(away)

    def _take(self, away: float) -> None:
        self._seen += 1
        weight = max(self._weight, 1 / self._seen)
        self._mean += weight * away
        self._variance = (1 - weight) * (self._variance + weight * away * away)
