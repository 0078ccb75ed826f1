"""Bytes over time from a log of allocations, thinned without losing a peak."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pyrometer.memory.category import CATEGORIES
from pyrometer.memory.recording.allocation import AllocationLog
from pyrometer.memory.timeline import PhaseSpan, Timeline

MOST_POINTS = 600


def timeline_of(log: AllocationLog, most: int = MOST_POINTS) -> Timeline:
    """Live bytes of each category after each event; of every stretch the highest point is kept, so no peak is lost."""
    if not log.events:
        return Timeline()
    changes = _changes(log)
    levels = np.cumsum(changes, axis=1)
    total = levels.sum(axis=0)
    kept = highest_of_stretches(total, most)
    return Timeline(
        event=kept.tolist(),
        total_bytes=total[kept].tolist(),
        category_bytes={
            name: row[kept].tolist() for name, row in zip(CATEGORIES, levels, strict=True) if row.any()
        },
        phases=_spans(log, kept),
    )


def _changes(log: AllocationLog) -> npt.NDArray[np.int64]:
    """Category by event: what each event adds or takes away."""
    rows = {name: row for row, name in enumerate(CATEGORIES)}
    changes = np.zeros((len(CATEGORIES), len(log.events)), dtype=np.int64)
    for event, index in enumerate(log.events):
        allocation = log.allocations[index if index >= 0 else ~index]
        changes[rows[allocation.settled], event] = allocation.nbytes if index >= 0 else -allocation.nbytes
    return changes


def highest_of_stretches(total: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """Indices of at most about `most` points: the first, the last, and the highest of each equal stretch.

    >>> highest_of_stretches(np.array([1, 5, 2, 9, 3, 1]), 4).tolist()
    [0, 1, 3, 5]
    """
    if len(total) <= most:
        return np.arange(len(total))
    edges = np.linspace(0, len(total), max(most - 1, 2), dtype=np.int64)
    highest = [begin + int(np.argmax(total[begin:end])) for begin, end in pairwise(edges)]
    return np.unique(np.array([0, *highest, len(total) - 1], dtype=np.int64))


def _spans(log: AllocationLog, kept: npt.NDArray[np.int64]) -> list[PhaseSpan]:
    spans, begin = [], 0
    for phase in log.phases:
        first, last = (int(np.searchsorted(kept, event)) for event in (begin, phase.event))
        if last > first:
            spans.append(PhaseSpan(name=phase.name, first=first, last=last - 1))
        begin = phase.event
    return spans
