"""Entries of `traceEvents` as columns, on their way from a chunk to the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from pyrometer.trace.reading.decoding import AnyEvent
from pyrometer.trace.reading.times import nanoseconds


class Entries(NamedTuple):
    """Entries of one chunk, in the order of the file."""

    ph: Sequence[str]
    cat: Sequence[str | None]
    name: Sequence[str | None]
    pid: Sequence[Any]
    tid: Sequence[Any]
    start: npt.NDArray[np.int64]  # ns, NO_TIME where there is none
    dur: npt.NDArray[np.int64]
    id: Sequence[Any]
    args: Sequence[msgspec.Raw]


def entries(events: Sequence[AnyEvent]) -> Entries:
    """Turn decoded events into columns; there is at least one."""
    ph, cat, name, pid, tid, ts, dur, ident, args = zip(*map(msgspec.structs.astuple, events), strict=True)
    return Entries(ph, cat, name, pid, tid, nanoseconds(ts), nanoseconds(dur), ident, args)
