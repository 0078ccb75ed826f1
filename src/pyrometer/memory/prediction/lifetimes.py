"""A log of allocations as columns: sizes apart from lifetimes, so that other sizes can be put in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyrometer.memory.category import CATEGORIES, Category
from pyrometer.memory.ledger.reading import at_work
from pyrometer.memory.prediction.cuda import block_sizes, reserved_peak, stays_on_host
from pyrometer.memory.recording.allocation import AllocationLog
from pyrometer.quantity import Bytes

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Peak(NamedTuple):
    """The most that is alive at one instant."""

    nbytes: Bytes
    event: int


@dataclass(frozen=True)
class Lifetimes:
    """When allocations live, whatever their sizes.

    Attributes:
        events: `i` where allocation `i` is made, `~i` where it is freed, `[n]`.
        categories: index into `CATEGORIES`, of each allocation, `[a]`.
        phases: name and last event of each phase.
        counted: whether an allocation is on the device, `[a]`.
        cuda: whether blocks are those of CUDA's allocator.
    """

    events: Integers
    categories: Integers
    phases: tuple[tuple[str, int], ...]
    counted: npt.NDArray[np.bool_]
    cuda: bool

    @classmethod
    def of(cls, log: AllocationLog, *, cuda: bool) -> Lifetimes:
        """The columns of a log."""
        numbers = {name: number for number, name in enumerate(CATEGORIES)}
        return cls(
            np.array(log.events, np.int64),
            np.array([numbers[allocation.settled] for allocation in log.allocations], np.int64),
            tuple((phase.name, phase.event) for phase in log.phases),
            np.array([not (cuda and stays_on_host(allocation)) for allocation in log.allocations], np.bool_),
            cuda,
        )

    def matches(self, lifetimes: Lifetimes) -> bool:
        """Whether the same things are allocated and freed in the same order."""
        return (
            np.array_equal(self.events, lifetimes.events)
            and np.array_equal(self.categories, lifetimes.categories)
            and self.phases == lifetimes.phases
        )

    def taken(self, sizes: Integers) -> Integers:
        """What allocations take on the device, `[a]`."""
        return np.where(self.counted, block_sizes(sizes) if self.cuda else sizes, 0)

    def without(self, sizes: Integers, category: Category) -> Integers:
        """Sizes with nothing of a category, `[a]`."""
        return np.where(self.categories == CATEGORIES.index(category), 0, sizes)

    def levels(self, sizes: Integers, category: Category | None = None) -> Integers:
        """Live bytes after each event, of one category or all, `[n]`."""
        taken = self.taken(sizes)
        if category is not None:
            taken = np.where(self.categories == CATEGORIES.index(category), taken, 0)
        births = self.events >= 0
        return np.cumsum(np.where(births, taken[self.events], -taken[~self.events]))

    def peak(self, sizes: Integers) -> Peak:
        """The peak over all steps."""
        levels = self.levels(sizes)
        if not len(levels):
            return Peak(0, -1)
        event = at_work(levels, self.phases)
        return Peak(int(levels[event]), event)

    def phase_peaks(self, sizes: Integers) -> dict[str, Bytes]:
        """The peak of each phase, over all steps."""
        levels, begin = self.levels(sizes), 0
        peaks: dict[str, Bytes] = {}
        for name, end in self.phases:
            if end > begin:
                peaks[name] = max(peaks.get(name, 0), int(levels[begin:end].max()))
            begin = end
        return peaks

    def alive_after(self, event: int) -> npt.NDArray[np.bool_]:
        """Which allocations hold memory right after an event, `[a]`."""
        alive = np.zeros(len(self.categories), np.bool_)
        for one in self.events[: event + 1].tolist():
            alive[one if one >= 0 else ~one] = one >= 0
        return alive

    def ledger(self, sizes: Integers, event: int) -> dict[str, Bytes]:
        """Bytes by category right after an event; every category is named."""
        taken = np.where(self.alive_after(event), self.taken(sizes), 0)
        return {name: int(taken[self.categories == number].sum()) for number, name in enumerate(CATEGORIES)}

    def phase_of(self, event: int) -> str | None:
        """The phase that an event belongs to."""
        return next((name for name, end in self.phases if event < end), None)

    def reserved(self, sizes: Integers) -> Bytes | None:
        """What CUDA's allocator would take from the device at most; `None` without one."""
        return reserved_peak(self.events, self.taken(sizes)) if self.cuda else None


def sizes_of(log: AllocationLog) -> Integers:
    """Bytes of each allocation, `[a]`."""
    return np.array([allocation.nbytes for allocation in log.allocations], np.int64)
