"""Entries of `traceEvents` as columns, on their way from a chunk to the tables: sorted by what they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.kinds import KIND_OF_NAME, Kind, kind_of
from pyrometer.trace.reading.decoding import AnyEvent
from pyrometer.trace.reading.scanned import ScannedEvents
from pyrometer.trace.reading.scanning import DUR, NAME, NAMES, SORT, TS
from pyrometer.trace.reading.times import nanoseconds
from pyrometer.trace.reading.tracks import Tracks

KINDS = list(Kind)
INSTANT, MEMORY = KINDS.index(Kind.INSTANT), KINDS.index(Kind.MEMORY)
METADATA, FLOW, COUNTER, PAIR = range(len(KINDS), len(KINDS) + 4)
"""What an entry is that is not an event with a kind; the others have the index of their kind."""

MEMORY_NAME = "[memory]"
_ROLE_OF_PHASE = {"M": METADATA, "s": FLOW, "t": FLOW, "f": FLOW, "C": COUNTER} | dict.fromkeys("BEbe", PAIR)
_SORT = attrgetter("ph", "cat", "pid", "tid")

IntArray = npt.NDArray[np.int64]
_Key = tuple[str, str | None, Any, Any]


class Sorts(dict[_Key, int]):
    """Numbers the combinations of `ph`, `cat`, `pid` and `tid`; there are few, so an event costs one look-up.

    Args:
        tracks: numbered in the order in which the file first names them.
    """

    def __init__(self, tracks: Tracks) -> None:
        super().__init__()
        self._tracks = tracks
        self.roles: list[int] = []
        self.tracks: list[int] = []
        self.categories: list[str | None] = []
        self.phases: list[str] = []
        self.by_name: list[int] = []  # those in which only the name tells the kind

    def __missing__(self, key: _Key) -> int:
        ph, category, pid, tid = key
        if ph == "X" and category != "cpu_instant_event":
            role = KINDS.index(kind_of(category))
        else:
            role = _ROLE_OF_PHASE.get(ph, INSTANT)
        self[key] = len(self.roles)
        self.roles.append(role)
        self.tracks.append(-1 if role in {METADATA, PAIR} else self._tracks[pid, tid])
        self.categories.append(category)
        self.phases.append(ph)
        if ph == "X" and (category or "").lower() in KIND_OF_NAME:
            self.by_name.append(self[key])
        return self[key]


@dataclass(frozen=True)
class Entries:
    """Some entries, those of a kind together, and in the order of the file within."""

    events: Sequence[AnyEvent]
    sorts: IntArray
    roles: npt.NDArray[np.uint8]
    start: IntArray  # ns, NO_TIME where there is none
    dur: IntArray

    def __len__(self) -> int:
        return len(self.events)

    def of_role(self, role: int) -> Entries:
        """Those of one role."""
        low, high = np.searchsorted(self.roles, [role, role + 1])
        return self.between(int(low), int(high))

    def between(self, low: int, high: int) -> Entries:
        """A slice."""
        return Entries(
            self.events[low:high],
            self.sorts[low:high],
            self.roles[low:high],
            self.start[low:high],
            self.dur[low:high],
        )

    def where(self, mask: npt.NDArray[np.bool_]) -> Entries:
        """Some of them."""
        places = np.flatnonzero(mask)
        return Entries(
            ScannedEvents(self.events.scan, self.events.rows[places])
            if isinstance(self.events, ScannedEvents)
            else [self.events[i] for i in places.tolist()],
            self.sorts[places],
            self.roles[places],
            self.start[places],
            self.dur[places],
        )


def to_entries(
    events: Sequence[AnyEvent], start: IntArray, sorts: Sorts, dur: IntArray | None = None
) -> Entries:
    """Sort events, of which there is one at least, and read their durations if these are not given."""
    if isinstance(events, ScannedEvents):
        return _sorted(events, sorts)
    found = np.fromiter(map(sorts.__getitem__, map(_SORT, events)), dtype=np.int64, count=len(events))
    roles = np.array(sorts.roles, dtype=np.uint8)[found]
    instants = np.flatnonzero(roles == INSTANT)
    if len(instants):
        is_memory = [events[i].name == MEMORY_NAME for i in instants.tolist()]
        roles[instants[is_memory]] = MEMORY
    for i in np.flatnonzero(np.isin(found, sorts.by_name)).tolist() if sorts.by_name else ():
        roles[i] = KINDS.index(kind_of(events[i].cat, events[i].name))
    order = np.argsort(roles, kind="stable")
    if len(events) > 1:
        events = itemgetter(*order.tolist())(events)
    dur = nanoseconds([event.dur for event in events]) if dur is None else dur[order]
    return Entries(events, found[order], roles[order], start[order], dur)


def _sorted(events: ScannedEvents, sorts: Sorts) -> Entries:
    """The same of events that were read as columns."""
    scan = events.scan
    numbers = np.array([sorts[key] for key in scan.sorts], dtype=np.int64)  # in order, as tracks are numbered
    found = numbers[scan.fields[SORT]]
    roles = np.array(sorts.roles, dtype=np.uint8)[found]
    is_memory = np.array([*(name == MEMORY_NAME for name in scan.tables[NAMES]), False])
    roles[(roles == INSTANT) & is_memory[scan.fields[NAME]]] = MEMORY  # -1 is no name, and last
    for i in np.flatnonzero(np.isin(found, sorts.by_name)).tolist() if sorts.by_name else ():
        name = scan.fields[NAME, i]
        roles[i] = KINDS.index(
            kind_of(sorts.categories[found[i]], scan.tables[NAMES][name] if name >= 0 else None)
        )
    order = np.argsort(roles, kind="stable")
    return Entries(
        ScannedEvents(scan, order),
        found[order],
        roles[order],
        scan.fields[TS, order],
        scan.fields[DUR, order],
    )


def names_of(events: Sequence[AnyEvent]) -> pl.Series:
    """Names; null where there is none."""
    if isinstance(events, ScannedEvents):
        return events.names()
    return pl.Series("name", [event.name for event in events], dtype=pl.String)
