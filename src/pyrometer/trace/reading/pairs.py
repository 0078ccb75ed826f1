"""Begin and end events (`B`/`E`, and `b`/`e` with an id) put together to complete ones.

Chrome's rule: on a track an end closes the innermost begin; asynchronous ones belong together by category, id and
name. Kineto writes complete events only, other writers do not. They are kept aside until the end of the file, because
they need not be in order.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pyrometer.trace.reading.entries import Entries
from pyrometer.trace.reading.ledger import Ledger


class _Half(NamedTuple):
    ts: int
    order: int
    ph: str
    cat: str | None
    name: str | None
    pid: Any
    tid: Any
    args: bytes
    byte: int


class Pairs:
    """Gathers halves.

    Args:
        ledger: where those without their other half are counted.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._halves: dict[tuple[Any, ...], list[_Half]] = defaultdict(list)
        self._order = 0

    def add(self, entries: Entries, i: int, byte: int) -> None:
        """Keep one half."""
        ph, cat, name, pid, tid = (
            entries.ph[i],
            entries.cat[i],
            entries.name[i],
            entries.pid[i],
            entries.tid[i],
        )
        key = (pid, tid) if ph in "BE" else (pid, cat, entries.id[i], name)
        self._order += 1
        half = _Half(
            int(entries.start[i]), self._order, ph.upper(), cat, name, pid, tid, bytes(entries.args[i]), byte
        )
        self._halves[key].append(half)

    def complete(self) -> Entries:
        """The complete events; those that lack their other half are counted as lost."""
        pairs = [pair for halves in self._halves.values() for pair in self._match(halves)]
        self._halves.clear()
        pairs.sort(key=lambda pair: pair[0].order)
        return Entries(
            ["X"] * len(pairs),
            [begin.cat if begin.cat is not None else end.cat for begin, end in pairs],
            [begin.name if begin.name is not None else end.name for begin, end in pairs],
            [begin.pid for begin, _ in pairs],
            [begin.tid for begin, _ in pairs],
            np.array([begin.ts for begin, _ in pairs], dtype=np.int64),
            np.array([end.ts - begin.ts for begin, end in pairs], dtype=np.int64),
            [None] * len(pairs),
            [msgspec.Raw(begin.args if begin.args != b"{}" else end.args) for begin, end in pairs],
        )

    def _match(self, halves: list[_Half]) -> list[tuple[_Half, _Half]]:
        found, waiting = [], []
        for half in sorted(halves, key=lambda half: (half.ts, half.order)):
            if half.ph == "B":
                waiting.append(half)
            elif waiting:
                found.append((waiting.pop(), half))
            else:
                self._ledger.note("unmatched_end", lost=1, byte=half.byte)
        for half in waiting:
            self._ledger.note("unmatched_begin", lost=1, byte=half.byte)
        return found
