"""What ends a rollout at once, without statistics."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.rollout.counts import (
    LATENCY,
    NOT_FINITE,
    OUT_OF_MEMORY,
    Counts,
    add_counts,
    num_above,
    quantile,
)
from pyrometer.rollout.judging.judgement import Guard
from pyrometer.rollout.observed import Epoch

FEWEST_FOR_TAIL = 200
TAIL_FACTOR = 3.0
FAILED_IN_ROW = 3
_BEYOND = 0.01
"""Of a P99: the share that lies beyond it."""


def broken_guards(epochs: Sequence[Epoch]) -> list[Guard]:
    """Every guard that the new version breaks and the old one does not."""
    new, old = (add_counts(getattr(epoch, arm) for epoch in epochs) for arm in ("new", "old"))
    found = [_never(new, old, NOT_FINITE, "outputs that are not finite")]
    found.append(_never(new, old, OUT_OF_MEMORY, "observations out of memory"))
    found.append(_in_row(new, old))
    found.append(_tail(new, old))
    return [guard for guard in found if guard is not None]


def _never(new: Counts, old: Counts, event: str, what: str) -> Guard | None:
    count = new.num_of(event)
    if not count or old.num_of(event):
        return None
    return Guard(
        guard=event, said=f"{count:,} {what} of {new.num:,}, the old version has none", value=count, limit=0
    )


def _in_row(new: Counts, old: Counts) -> Guard | None:
    """An outage of what both need fails both, and is no fault of the new version."""
    if new.most_failed_in_row < FAILED_IN_ROW or old.most_failed_in_row >= FAILED_IN_ROW:
        return None
    said = (
        f"{new.most_failed_in_row} exceptions in a row, the old version had at most {old.most_failed_in_row}"
    )
    return Guard(guard="exceptions-in-row", said=said, value=new.most_failed_in_row, limit=FAILED_IN_ROW)


def _tail(new: Counts, old: Counts) -> Guard | None:
    """P99 above three times that of the old version, by more observations than chance puts there.

    Among few hundred observations P99 is the second or third largest, which a rare pause decides; so the share beyond the limit
    has to be that of a P97.
    """
    ours, theirs = new.buckets(LATENCY), old.buckets(LATENCY)
    num = sum(ours.values())
    if num < FEWEST_FOR_TAIL or sum(theirs.values()) < FEWEST_FOR_TAIL:
        return None
    limit = TAIL_FACTOR * quantile(theirs, 1 - _BEYOND)
    beyond = num_above(ours, limit)
    if beyond <= max(
        TAIL_FACTOR * _BEYOND * num, TAIL_FACTOR * num_above(theirs, limit) / sum(theirs.values()) * num
    ):
        return None
    value = quantile(ours, 1 - _BEYOND)
    said = f"P99 of latency is {value * 1e3:.3g} ms, more than 3 times that of the old version ({limit / 3 * 1e3:.3g} ms)"
    return Guard(guard="p99", said=said, value=value, limit=limit)
