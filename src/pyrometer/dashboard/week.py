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
    series: Callable[[RunSummary], Sequence[PastRun]],
    baselines: Mapping[str, str],
    now: datetime,
) -> list[Shift]:
    """The targets that moved this week, the slowest first.

    Args:
        newest: the newest measured run of each target, the newest first.
        series: runs that may stand beside a run, the oldest first, itself the last.
        baselines: the pinned run of a target.
        now: when the week ends.
    """
    found = []
    for run in [one for one in newest if now - created_at(one) <= WEEK][:MOST_TARGETS]:
        past = series(run)
        before = _against(past, baselines.get(run.target), now) if past else None
        if before is not None and change_between(before, past[-1]) is not None:
            found.append(
                Shift(run.target, past[-1].median_s / before.median_s, before.run_id, past[-1].run_id)
            )
    return sorted(found, key=lambda shift: -shift.ratio)


def _against(past: Sequence[PastRun], pinned: str | None, now: datetime) -> PastRun | None:
    """The pinned run, else the last one before the week, else the first of the week; never the newest itself."""
    earlier = past[:-1]
    for run in earlier:
        if run.run_id == pinned:
            return run
    old = [run for run in earlier if now - datetime.fromisoformat(run.created) > WEEK]
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
