"""What is normal for a signal: learned at the start, then slowly, and only from what is not suspicious.

A baseline has a centre and a spread, both robust: a few outliers while it is learned do no harm. Where a signal has a
season (load over the day), each slot of the period has an offset of its own, and is judged once it has been seen.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pyrometer.bench.autocorrelation import autocorrelation_time
from pyrometer.errors import InputError
from pyrometer.quantity import Seconds

MAD = 1.4826  # times the median absolute deviation is the standard deviation of normal noise
MOST_CORRELATED = 9.0
"""Autocorrelation times beyond this are not believed: a baseline of 100 values cannot tell them from a trend."""


class Season(NamedTuple):
    """A period that repeats, such as a day of 24 slots."""

    period_s: Seconds = 86400.0
    slots: int = 24
    seen: int = 20  # values in a slot before it is judged

    def slot(self, at_s: Seconds) -> int:
        """In which slot a time lies."""
        return int(at_s % self.period_s / self.period_s * self.slots)


class Baseline:
    """Centre and spread of one signal.

    Args:
        warm_up: values to learn from before anything is judged.
        memory: values over which it is forgotten, once learned; 0 freezes it.
        floor: the least spread; what differs by less than a few of it is not worth an alarm.
        season: the period of the signal, if it has one.
    """

    def __init__(
        self, warm_up: int = 80, memory: int = 400, floor: float = 0.01, season: Season | None = None
    ) -> None:
        if warm_up < 8:
            raise InputError(f"warm_up: got {warm_up}; legal is 8 values or more")
        self._first: list[float] = []
        self._first_slots: list[int] = []
        self._warm_up, self._memory, self._floor = warm_up, memory, floor
        self.centre, self.spread, self.count = math.nan, math.nan, 0
        self._season = season
        self._offsets = np.zeros(season.slots if season else 1)
        self._seen = np.zeros(season.slots if season else 1, np.int64)

    @property
    def is_learned(self) -> bool:
        """Whether warm-up is over."""
        return self.count > 0

    @property
    def uncertainty(self) -> float:
        """How far the centre may be off, in spreads."""
        return math.inf if not self.count else 1.25 / math.sqrt(self.count)

    def expected(self, at_s: Seconds) -> float:
        """The normal value at this time."""
        return self.centre + (float(self._offsets[self._season.slot(at_s)]) if self._season else 0.0)

    def deviation(self, at_s: Seconds, value: float) -> float | None:
        """How many spreads a value is above normal; `None` while that is being learned."""
        if not self.is_learned or (self._season and self._seen[self._season.slot(at_s)] < self._season.seen):
            return None
        return (value - self.expected(at_s)) / self.spread

    def learn(self, at_s: Seconds, value: float) -> None:
        """Take in a value that is held to be normal."""
        if not self.is_learned:
            self._first.append(value)
            self._first_slots.append(self._season.slot(at_s) if self._season else 0)
            if len(self._first) >= self._warm_up:
                self._settle()
            return
        if self._season:
            self._learn_slot(self._season.slot(at_s), value)
        elif self._memory:
            self.count = min(self.count + 1, self._memory)
            # Clipped, so that one outlier moves the centre by no more than an ordinary value.
            step = min(max(value - self.centre, -2 * self.spread), 2 * self.spread)
            self.centre += step / self.count

    def _learn_slot(self, slot: int, value: float) -> None:
        self._seen[slot] += 1
        rate = max(1 / self._seen[slot], 0.02)
        self._offsets[slot] += (value - self.centre - self._offsets[slot]) * rate

    def _settle(self) -> None:
        first, slots = np.asarray(self._first), np.asarray(self._first_slots)
        self.centre = float(np.median(first))
        if self._season:
            # The season is no noise: the spread is that of what it leaves.
            self._seen = np.bincount(slots, minlength=len(self._seen))
            for slot in np.unique(slots):
                self._offsets[slot] = float(np.median(first[slots == slot])) - self.centre
            first = first - self._offsets[slots]
        noise = math.sqrt(min(autocorrelation_time(first), MOST_CORRELATED))
        # A queue makes the upper side wider than the lower one: busy times last.
        upper = (float(np.quantile(first, 0.95)) - self.centre) / 1.645
        spread = max(MAD * float(np.median(np.abs(first - self.centre))), upper)
        self.spread = max(spread * noise, self._floor)
        self.count = len(first)
        self._first.clear()
        self._first_slots.clear()
