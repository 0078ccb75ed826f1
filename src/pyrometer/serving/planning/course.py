"""What was measured step by step, resampled for a simulated clock."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Generic, TypeVar

from pyrometer.serving.planning.arrivals import BLOCK, Generator

T = TypeVar("T")
MOST_BLOCKS = 24
"""That a course is cut into: the fewer there are, the more one slow moment of a minute counts in the interval."""
LEAST_BLOCKS = 8


class Course(Generic[T]):
    """Steps in blocks that stay together, since a machine that is busy is so for a while.

    Args:
        steps: as they were measured.
        at_once: which of them followed the one before without a rest, and stand for those that do.
    """

    def __init__(self, steps: Sequence[T], at_once: Sequence[bool]) -> None:
        self._steps = steps
        every = range(len(steps))
        self._places = {kind: [at for at in every if at_once[at] is kind] or every for kind in (True, False)}
        self._block = max(1, min(BLOCK, len(steps) // LEAST_BLOCKS), len(steps) // MOST_BLOCKS)
        self._starts = list(every)[:: self._block]
        self._at = self._left = 0

    def renew(self, random: Generator) -> None:
        """Draw the blocks of which the next course is made: what was measured is one course of many, and another has other moments."""
        chosen = random.integers(len(self._starts), size=len(self._starts))
        self._drawn = [self._starts[place] for place in chosen]
        self._left = 0

    def next(self, random: Generator, *, at_once: bool) -> T:
        """The next step of its kind."""
        if not self._left:
            self._at = self._drawn[random.integers(len(self._drawn))]
            self._left = self._block
        self._left -= 1
        places = self._places[at_once]
        place = places[bisect.bisect_left(places, self._at) % len(places)]
        self._at = place + 1
        return self._steps[place]
