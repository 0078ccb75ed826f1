"""The time of a whole search: what is spent of it, and what is set aside for the confirmation."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pyrometer.quantity import Seconds

PAIR_S: Seconds = 20.0
SHORTEST_PAIR_S: Seconds = 3.0
BOTH_OPENED = 1.3
"""Of the time that one process takes to start, for two at once."""

REOPENED = 0.3
"""Of a configuration's price, to open it again: what it compiled or exported is found ready."""

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
class Costs:
    """What a pair of the confirmation takes here, from what this search has seen so far.

    Attributes:
        compared_s: to compare two processes.
        opening_s: to start a process and load the workload in it, at present.
        price_s: to apply the best configuration, and for its first call.
        check_s: to hold its results against the reference.
        correction: what pairs took, over what had been expected of them.
    """

    compared_s: Seconds
    opening_s: Seconds = 0.0
    price_s: Seconds = 0.0
    check_s: Seconds = 0.0
    correction: float = 1.0

    @property
    def pair_s(self) -> Seconds:
        """Expected of the next pair of processes."""
        both_s = BOTH_OPENED * self.opening_s + REOPENED * self.price_s
        return self.correction * (both_s + self.compared_s)

    def correct(self, took_s: Seconds, num_pairs: int) -> None:
        """Learn from a confirmation that is over."""
        each_s = (took_s - self.check_s) / num_pairs
        self.correction *= max(each_s, SHORTEST_PAIR_S / 2) / self.pair_s


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

    def reserve(self, num_pairs: int, costs: Costs, then_s: Seconds = 0.0) -> None:
        """Set time aside for the confirmation, which is shorter where the budget is.

        Args:
            num_pairs: of fresh processes; zero as long as there is nothing to confirm.
            costs: of one pair, as they are at present.
            then_s: for what follows the confirmation.
        """
        if num_pairs:
            fewest = FEWEST_PAIRS if self.total_s >= HASTY_S else FEWEST_PAIRS - 1
            wanted_s = min(num_pairs * costs.pair_s, self.total_s * MOST_RESERVED)
            pairs_s = max(fewest * costs.pair_s, wanted_s) + costs.check_s
        else:
            pairs_s = min(2 * costs.pair_s, self.total_s * MOST_IN_ADVANCE)
        self.reserved_s = then_s + pairs_s


def shortest_pair_s(step_s: Seconds) -> Seconds:
    """How long a pair of processes has to be compared at least, for a dozen blocks."""
    return max(SHORTEST_PAIR_S, 24 * step_s)
