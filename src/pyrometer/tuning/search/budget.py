"""The time of a whole search: what is spent of it, and what is set aside for the confirmation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyrometer.quantity import Seconds

PAIR_S: Seconds = 20.0
SHORTEST_PAIR_S: Seconds = 3.0
WARMING_S: Seconds = 4.0
FEWEST_PAIRS = 3
"""Of fresh processes: the interval from two is three times as wide, and decides only what is obvious."""

HASTY_S: Seconds = 120.0
"""Budget below which two pairs are the fewest: with one there is no interval."""

MOST_RESERVED = 0.4
"""Of the budget, for the confirmation: what is left of it goes to trials."""

MOST_IN_ADVANCE = 0.2
"""Of the budget, as long as there is nothing to confirm: without a trial there never is."""

DIAGNOSIS_SHARE = 0.1
SHORTEST_DIAGNOSIS_S: Seconds = 20.0
LONGEST_DIAGNOSIS_S: Seconds = 60.0
PLANNING_SHARE, SHORTEST_PLANNING_S = 0.15, 10.0
BASELINE_SHARE, LONGEST_BASELINE_S = 0.05, 6.0
TRIAL_SHARE = 0.25
"""Of the time that is left for trials: one comparison takes no more."""


@dataclass
class Budget:
    """All the time that a search may take, from the diagnosis to the confirmation.

    Args:
        total_s: what was asked for.
        now: a clock.

    Attributes:
        reserved_s: what trials leave for the end.
    """

    total_s: Seconds
    now: Callable[[], Seconds] = time.monotonic
    reserved_s: Seconds = 0.0
    began_s: Seconds = field(init=False)

    def __post_init__(self) -> None:
        self.began_s = self.now()

    @property
    def spent_s(self) -> Seconds:
        """Since the beginning."""
        return self.now() - self.began_s

    @property
    def left_s(self) -> Seconds:
        """For everything."""
        return self.total_s - self.spent_s

    @property
    def trials_left_s(self) -> Seconds:
        """For trials, without what is set aside."""
        return self.left_s - self.reserved_s

    @property
    def share(self) -> float:
        """Of the whole, for a progress bar."""
        return min(self.spent_s / self.total_s, 0.99)

    @property
    def diagnosis_s(self) -> Seconds:
        """For the diagnosis before the search; nothing where the budget is too short for one that finds anything."""
        allowed = min(self.total_s * DIAGNOSIS_SHARE, LONGEST_DIAGNOSIS_S)
        return allowed if allowed >= SHORTEST_DIAGNOSIS_S else 0.0

    @property
    def planning_s(self) -> Seconds:
        """For plans of levers that save memory, which are measured."""
        return max(self.total_s * PLANNING_SHARE, SHORTEST_PLANNING_S)

    @property
    def baseline_s(self) -> Seconds:
        """For the measurement of the baseline."""
        return min(self.total_s * BASELINE_SHARE, LONGEST_BASELINE_S)

    @property
    def fewest_pairs(self) -> int:
        """Of fresh processes that the confirmation takes in any case."""
        return FEWEST_PAIRS if self.total_s >= HASTY_S else FEWEST_PAIRS - 1

    def reserve(self, num_pairs: int, opening_s: Seconds, step_s: Seconds, then_s: Seconds = 0.0) -> None:
        """Set time aside for the confirmation, which is shorter where the budget is.

        Args:
            num_pairs: of fresh processes.
            opening_s: what opening one pair takes.
            step_s: of the baseline.
            then_s: for what follows the confirmation.
        """
        each_s = opening_s + shortest_pair_s(step_s)
        least_s = self.fewest_pairs * each_s if num_pairs else min(2 * each_s, self.total_s * MOST_IN_ADVANCE)
        wanted_s = num_pairs * (opening_s + min(PAIR_S, WARMING_S + shortest_pair_s(step_s)))
        self.reserved_s = then_s + max(least_s, min(wanted_s, self.total_s * MOST_RESERVED))


def shortest_pair_s(step_s: Seconds) -> Seconds:
    """How long a pair of processes has to be compared at least, for a dozen blocks."""
    return max(SHORTEST_PAIR_S, 24 * step_s)
