"""More than two runs beside each other: their medians as bars with intervals, each against the first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyrometer.quantity import significant
from pyrometer.report.attachments import PastRun
from pyrometer.report.history import change_between, past_run
from pyrometer.store.marks import Marks
from pyrometer.store.run import Run


class Row(NamedTuple):
    """One run."""

    run: Run
    past: PastRun | None  # `None` where no step was timed
    share: float  # of the longest median
    ratio: str  # its time over that of the first; empty where they must not be compared
    change: str | None  # where the intervals lie apart


def beside(runs: Sequence[Run], marks: Marks) -> list[Row]:
    """The runs, a pinned baseline first, else the oldest; ratios stand only between runs of one target on one machine."""
    ordered = sorted(runs, key=lambda run: (marks.baselines.get(run.target) != run.id, run.number))
    measured = {run.id: past_run(run) for run in ordered}
    longest = max((past.median_s for past in measured.values() if past is not None), default=0.0)
    return [_row(run, measured, ordered[0], longest) for run in ordered]


def _row(run: Run, measured: dict[str, PastRun | None], first: Run, longest: float) -> Row:
    past, base = measured[run.id], measured[first.id]
    share = past.median_s / longest if past is not None and longest else 0.0
    alike = (run.target, run.fingerprint) == (first.target, first.fingerprint) and run.fingerprint
    if past is None or base is None or run.id == first.id or not alike or not base.median_s:
        return Row(run, past, share, "", None)
    return Row(run, past, share, f"{significant(past.median_s / base.median_s)}×", change_between(base, past))
