"""Errors per request: a betting process whose false alarms are bounded however often it is looked at.

Each request is a bet against "the error rate is at most `normal`"; the likelihood ratios of several worse rates are
multiplied up, and begin anew from 1 whenever they fall below it (an e-detector: Shin, Ramdas and Rinaldo, 2022). Under a normal
rate the mean number of looks to a false alarm is at least `1 / alpha`, for any way of looking.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pyrometer.errors import InputError
from pyrometer.monitor.detecting.detector import Floats, Reading, registered
from pyrometer.quantity import Seconds

WORSE = np.array([1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0])
"""Times the normal rate: what is bet on, in equal parts."""


@registered("error-rate")
class ErrorRate:
    """Whether more requests fail than is normal; each value is 1 for a failed request and 0 for another.

    Args:
        normal: the share of failures that is tolerated.
        alpha: one over the mean number of looks to a false alarm.
    """

    def __init__(self, normal: float = 0.001, alpha: float = 1e-6) -> None:
        if not 0 < normal < 1 or not 0 < alpha < 1:
            raise InputError(f"error-rate: got normal={normal:g}, alpha={alpha:g}; legal is between 0 and 1")
        rates = np.unique(np.minimum(WORSE * normal, (1 + normal) / 2))
        self._fail, self._pass = np.log(rates / normal), np.log((1 - rates) / (1 - normal))
        self._sums = np.zeros(len(rates))
        self._normal, self._needed = normal, math.log(1 / alpha)
        self._recent = np.zeros(2)

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per call with values; all of them are one bet."""
        failed = np.asarray(values, np.float64) > 0
        if not len(failed):
            return
        yield self.count(at_s, len(failed), int(failed.sum()))

    def count(self, at_s: Seconds, requests: int, failures: int) -> Reading:
        """The same from counts, such as those of a tick."""
        won = failures * self._fail + (requests - failures) * self._pass
        # Not above twice what an alarm needs, so that it can end.
        self._sums = np.minimum(np.maximum(self._sums, 0.0) + won, 2 * self._needed)
        together = float(np.logaddexp.reduce(self._sums) - math.log(len(self._sums)))
        self._recent = self._recent * 0.9 + (requests, failures)
        share = float(self._recent[1] / self._recent[0])
        evidence = f"{share:.2%} of recent requests failed, {self._normal:.2%} is tolerated"
        return Reading(
            at_s=at_s,
            after=requests,
            score=max(together, 0.0) / self._needed,
            value=share,
            expected=self._normal,
            evidence=evidence,
        )
