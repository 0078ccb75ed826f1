"""Begin and end events (`B`/`E`, and `b`/`e` with an id) put together to complete ones.

Chrome's rule: on a track an end closes the innermost begin; asynchronous ones belong together by category, id and
name. Kineto writes complete events only, other writers do not. They are kept aside until the end of the file, because
they need not be in order.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from msgspec import Raw

from pyrometer.trace.reading.decoding import AnyEvent
from pyrometer.trace.reading.entries import Entries, IntArray
from pyrometer.trace.reading.repair_log import RepairLog
from pyrometer.trace.reading.shapes import Event


class _Half(NamedTuple):
    ts: int
    order: int
    event: Event
    byte: int


class Pairs:
    """Gathers halves.

    Args:
        repair_log: where those without their other half are counted.
    """

    def __init__(self, repair_log: RepairLog) -> None:
        self._repair_log = repair_log
        self._halves: dict[tuple[Any, ...], list[_Half]] = defaultdict(list)
        self._order = 0

    def add(self, entries: Entries, byte: int) -> None:
        """Keep halves of a chunk that begins at a byte of the file."""
        for event, start in zip(entries.events, entries.start.tolist(), strict=True):
            key = (event.pid, event.tid) if event.ph in "BE" else (event.pid, event.cat, event.id, event.name)
            self._order += 1
            kept = Event(  # the text of the chunk is not kept
                event.ph, event.cat, event.name, event.pid, event.tid, args=Raw(bytes(event.args))
            )
            self._halves[key].append(_Half(start, self._order, kept, byte))

    def complete(self) -> tuple[list[AnyEvent], IntArray, IntArray]:
        """The complete events, their starts and durations; those that lack their other half are counted as lost."""
        pairs = [pair for halves in self._halves.values() for pair in self._match(halves)]
        self._halves.clear()
        pairs.sort(key=lambda pair: pair[0].order)
        return (
            [_joined(begin.event, end.event) for begin, end in pairs],
            np.array([begin.ts for begin, _ in pairs], dtype=np.int64),
            np.array([end.ts - begin.ts for begin, end in pairs], dtype=np.int64),
        )

    def _match(self, halves: list[_Half]) -> list[tuple[_Half, _Half]]:
        found, waiting = [], []
        for half in sorted(halves, key=lambda half: (half.ts, half.order)):
            if half.event.ph in "Bb":
                waiting.append(half)
            elif waiting:
                found.append((waiting.pop(), half))
            else:
                self._repair_log.note("unmatched_end", lost=1, byte=half.byte)
        for half in waiting:
            self._repair_log.note("unmatched_begin", lost=1, byte=half.byte)
        return found


def _joined(begin: Event, end: Event) -> Event:
    return Event(
        "X",
        end.cat if begin.cat is None else begin.cat,
        end.name if begin.name is None else begin.name,
        begin.pid,
        begin.tid,
        args=end.args if bytes(begin.args) == b"{}" else begin.args,
    )
