"""From a log of allocations to the ledger, to what holds the peak, and to sums by module, operator and dtype."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from pyrometer.memory.category import CATEGORIES, Category
from pyrometer.memory.place import HeldBytes
from pyrometer.memory.recording.allocation import Allocation, AllocationLog, PhaseEnd
from pyrometer.quantity import Bytes
from pyrometer.workload.whereabouts.lines import site_of

WORK = frozenset({"forward", "backward", "optimizer"})
"""Phases in which a program computes."""

BEFORE = "(before the steps)"
"""Where something was allocated that was there before the recording began."""

WITHOUT_LINE = {
    "gradients": "(accumulating gradients)",
    "optimizer": "(making the optimizer's state)",
    "inputs": "(loading the batch)",
}
"""Where something was allocated that no line of the user's was running for."""


def ledger_of(live: Iterable[Allocation]) -> dict[str, Bytes]:
    """Bytes by category, every category named; they add up to what is alive."""
    ledger: dict[str, Bytes] = dict.fromkeys(CATEGORIES, 0)
    for allocation in live:
        ledger[allocation.settled] += allocation.nbytes
    return ledger


def phase_at(log: AllocationLog, event: int) -> PhaseEnd | None:
    """The phase that an event belongs to; `None` for what came after the last one."""
    return next((phase for phase in log.phases if event < phase.event), None)


def at_work(levels: npt.NDArray[np.int64], phases: Sequence[tuple[str, int]]) -> int:
    """The event of the highest level; where several are as high, the first in a phase of work, not before or between steps.

    Args:
        levels: bytes after each event.
        phases: name of each phase, and the event after its last.

    >>> at_work(np.array([4, 2, 4, 4]), [("setup", 1), ("data", 3), ("forward", 4)])
    3
    """
    highest = np.flatnonzero(levels == levels.max())
    ends = np.array([end for _, end in phases], np.int64)
    numbers = np.searchsorted(ends, highest, side="right")
    working = np.array([*(name in WORK for name, _ in phases), False])
    first = highest[working[numbers]]
    return int(first[0] if len(first) else highest[0])


def bytes_by(live: Iterable[Allocation], key: Callable[[Allocation], str | None]) -> dict[str, Bytes]:
    """Bytes by any property, the largest first; what has none is left out."""
    sums: dict[str, Bytes] = defaultdict(int)
    for allocation in live:
        name = key(allocation)
        if name and allocation.nbytes:
            sums[name] += allocation.nbytes
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def held_by_place(live: Sequence[Allocation], most: int | None = None) -> list[HeldBytes]:
    """What is alive by the line that allocated it, the module that ran and the category, the largest first.

    Each entry is of one category, so that sums by category are those of the ledger.
    """
    groups: dict[tuple[str, str | None, Category], list[Allocation]] = defaultdict(list)
    for allocation in live:
        groups[place_of(allocation), allocation.origin.module, allocation.settled].append(allocation)
    held = [_held(*key, group) for key, group in groups.items()]
    return sorted(held, key=lambda one: (-one.bytes, one.site, one.module or "", one.category or ""))[:most]


def place_of(allocation: Allocation) -> str:
    """The user's line as `file:line`; where there is none what it was made for, or the operator that made it."""
    origin, category = allocation.origin, allocation.settled
    if origin.point is not None:
        return site_of(origin.point).place
    if not origin.operator:
        return f"{category} {BEFORE}"
    return WITHOUT_LINE.get(category, origin.operator)


def _held(place: str, module: str | None, category: Category, group: Sequence[Allocation]) -> HeldBytes:
    point = group[0].origin.point
    site = site_of(point) if point is not None else None
    return HeldBytes(
        site=place,
        bytes=sum(allocation.nbytes for allocation in group),
        count=len(group),
        module=module,
        operator=_most(group, lambda allocation: allocation.origin.operator),
        category=category,
        dtype=_most(group, lambda allocation: allocation.dtype),
        function=site.function if site else None,
        source=site.source if site else None,
    )


def _most(group: Sequence[Allocation], key: Callable[[Allocation], str | None]) -> str | None:
    return next(iter(bytes_by(group, key)), None)
