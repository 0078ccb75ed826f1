"""A limit that was promised: the hot path compares each request with it, at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pyrometer.errors import InputError
from pyrometer.monitor.detecting.detector import Floats, Reading, registered
from pyrometer.quantity import Seconds


@registered("limit")
class Limit:
    """The largest value of each call against an absolute limit; there is no warm-up.

    Args:
        most: the limit, in the unit of the signal.
        needed: values over it in one call for an alarm to be due.
    """

    def __init__(self, most: float, needed: int = 1) -> None:
        if not most > 0 or needed < 1:
            raise InputError(f"limit: got most={most:g}, needed={needed}; legal are above 0 and 1 or more")
        self._most, self._needed = most, needed

    def observe(self, at_s: Seconds, values: Floats) -> Iterator[Reading]:
        """One reading per call with values; NaN is over any limit."""
        values = np.asarray(values, np.float64)
        if not len(values):
            return
        over = np.flatnonzero(~(values <= self._most))
        worst = float(np.max(np.where(np.isnan(values), np.inf, values)))
        due = len(over) >= self._needed
        after = int(over[self._needed - 1]) + 1 if due else len(values)
        score = max(worst / self._most, 1.0) if due else min(worst / self._most, 0.999)
        evidence = f"{len(over)} of {len(values)} over {self._most:.4g}, the largest {worst:.4g}"
        yield Reading(
            at_s=at_s, after=after, score=score, value=worst, expected=self._most, evidence=evidence
        )
