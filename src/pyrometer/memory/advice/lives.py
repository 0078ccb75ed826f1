"""The peak of steps if some allocations lived otherwise: shorter, smaller, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyrometer.memory.recording.allocation import AllocationLog
from pyrometer.quantity import Bytes


class Life(NamedTuple):
    """From one event to another, bytes that are held; the last event is not part of it."""

    born: int
    died: int
    nbytes: Bytes


class Lives:
    """Every allocation of a recording by when it lived.

    >>> from pyrometer.memory.recording.allocation import Allocation, Origin
    >>> log, nowhere = AllocationLog(), Origin("", None, None)
    >>> for nbytes in (100, 50):
    ...     _ = log.born(Allocation(nbytes, 0, nowhere, "uint8"))
    >>> lives = Lives(log)
    >>> lives.peak(), lives.peak({0: [Life(0, 1, 100)]})
    (150, 100)
    """

    def __init__(self, log: AllocationLog) -> None:
        self._length = len(log.events) + 1
        self._lives = [
            Life(
                allocation.born,
                self._length if allocation.died is None else allocation.died,
                allocation.nbytes,
            )
            for allocation in log.allocations
        ]

    def __getitem__(self, index: int) -> Life:
        return self._lives[index]

    def until(self, index: int, event: int) -> Life:
        """A life that ends at an event already."""
        life = self._lives[index]
        return life._replace(died=max(min(life.died, event), life.born))

    def without(self, gaps: Mapping[int, tuple[int, int]]) -> dict[int, list[Life]]:
        """Lives that are interrupted: between two events each, where there is anything between."""
        return {
            index: [life._replace(died=begin), life._replace(born=end)]
            for index, (begin, end) in gaps.items()
            if (life := self._lives[index]).born <= begin < end <= life.died
        }

    def levels(self, changed: dict[int, list[Life]] | None = None) -> npt.NDArray[np.int64]:
        """Live bytes after each event.

        Args:
            changed: by the number of an allocation, the lives that it has instead; numbers that are no allocation's add lives.
        """
        changed = changed or {}
        kept: Iterable[Life] = (life for index, life in enumerate(self._lives) if index not in changed)
        steps = np.zeros(self._length + 1, np.int64)
        for life in (*kept, *(life for lives in changed.values() for life in lives)):
            if life.died > life.born:
                steps[life.born] += life.nbytes
                steps[life.died] -= life.nbytes
        levels: npt.NDArray[np.int64] = np.cumsum(steps[:-1])
        return levels

    def peak(self, changed: dict[int, list[Life]] | None = None) -> Bytes:
        """The most that is alive at one instant, with some lives changed."""
        return int(self.levels(changed).max(initial=0))
