"""What got slower this week: the newest run of each target against its baseline, else against the last run before the week."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from pyrometer.quantity import significant
from pyrometer.report.attachments import PastRun
from pyrometer.report.history import change_between
from pyrometer.store.run import RunSummary, created_at

WEEK = timedelta(days=7)
MOST_TARGETS = 40
"""Targets that are looked at, those that ran last first."""

MOST_NAMED = 3


class Shift(NamedTuple):
    """A target whose newest run lies apart from the run that it is compared with."""

    target: str
    ratio: float  # new time over old
    before: str  # ids of the two runs
    after: str


def shifts(
    newest: Sequence[RunSummary],
    trend: Callable[[RunSummary], Sequence[RunSummary]],
    compared: Callable[[RunSummary, RunSummary], Sequence[PastRun]],
    baselines: Mapping[str, str],
    now: datetime,
) -> list[Shift]:
    """The targets that moved this week, the slowest first.

    Args:
        newest: the newest measured run of each target, the newest first.
        trend: runs that may stand beside a run, the oldest first, itself the last.
        compared: reads two of them, the earlier first; fewer where they cannot stand beside each other.
        baselines: the pinned run of a target.
        now: when the week ends.
    """
    found = []
    for run in [one for one in newest if now - created_at(one) <= WEEK][:MOST_TARGETS]:
        before = _against(trend(run), baselines.get(run.target), now)
        pair = (
            () if before is None else compared(before, run)
        )  # only these two are read: a week may hold thousands
        if len(pair) == 2 and change_between(*pair) is not None:
            old, new = pair
            found.append(Shift(run.target, new.median_s / old.median_s, old.run_id, new.run_id))
    return sorted(found, key=lambda shift: -shift.ratio)


def _against(past: Sequence[RunSummary], pinned: str | None, now: datetime) -> RunSummary | None:
    """The pinned run, else the last one before the week, else the first of the week; never the newest itself."""
    earlier = past[:-1]
    for run in earlier:
        if run.id == pinned:
            return run
    old = [run for run in earlier if now - created_at(run) > WEEK]
    return old[-1] if old else next(iter(earlier), None)


def sentence(found: Sequence[Shift]) -> str:
    """The first sentence of the list.

    >>> sentence([])
    'Nothing got slower this week'
    >>> sentence([Shift("model.py:work", 1.25, "r1", "r2"), Shift("a.py:b", 0.5, "r3", "r4")])
    'Slower this week: model.py:work (1.25×)'
    """
    slower = [shift for shift in found if shift.ratio > 1]
    if not slower:
        return "Nothing got slower this week"
    named = ", ".join(f"{shift.target} ({significant(shift.ratio)}×)" for shift in slower[:MOST_NAMED])
    left = len(slower) - MOST_NAMED
    return f"Slower this week: {named}" + (f" and {left} more" if left > 0 else "")
