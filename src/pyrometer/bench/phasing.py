"""Where a step's time goes, phase by phase, in a pass of its own so that the marks never touch the main figures."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np

from pyrometer.bench.clock import Clock
from pyrometer.bench.measurement import PhaseTime
from pyrometer.bench.sampling import step_failure
from pyrometer.errors import PyrometerError
from pyrometer.garbage import uncollected
from pyrometer.quantity import Seconds
from pyrometer.workload.workload import Session

REST = "rest"


def time_phases(session: Session, clock: Clock, budget_s: Seconds, order: tuple[str, ...]) -> list[PhaseTime]:
    """Run phased steps for `budget_s` (at least three, at most 200) and return the time of each phase.

    Raises:
        UserProgramError: a step raised.
    """
    rows: list[dict[str, Seconds]] = []
    totals: list[Seconds] = []
    deadline_ns = clock.host_ns() + int(budget_s * 1e9)
    session.activate()
    while len(rows) < 3 or (clock.host_ns() < deadline_ns and len(rows) < 200):
        marks: list[tuple[str, Any]] = [("", clock.mark())]
        try:
            with uncollected():
                session.phased_step(lambda phase, marks=marks: marks.append((phase, clock.mark())))  # type: ignore[misc]
            marks.append((REST, clock.mark()))
            clock.synchronize()
        except PyrometerError:
            raise
        except (Exception, SystemExit) as error:
            raise step_failure(len(rows) + 1, error) from error
        rows.append(_durations(marks, clock))
        totals.append(clock.between(marks[0][1], marks[-1][1]))
    return split(rows, totals, (*order, REST))


def _durations(marks: list[tuple[str, Any]], clock: Clock) -> dict[str, Seconds]:
    durations: dict[str, Seconds] = defaultdict(float)
    for (_, start), (phase, end) in pairwise(marks):
        durations[phase] += clock.between(start, end)
    return durations


def split(rows: list[dict[str, Seconds]], totals: list[Seconds], order: tuple[str, ...]) -> list[PhaseTime]:
    """Phase times of many steps brought to means, medians and shares; phases that never took time are left out.

    >>> [(p.name, p.share) for p in split([{"forward": 3.0, "rest": 1.0}], [4.0], ("forward", "rest"))]
    [('forward', 0.75), ('rest', 0.25)]
    """
    whole = float(np.mean(totals))
    phase_times: list[PhaseTime] = []
    for name in order:
        times = np.array([row.get(name, 0.0) for row in rows])
        if times.any() or name == REST:
            mean = float(times.mean())
            phase_times.append(
                PhaseTime(name=name, median_s=float(np.median(times)), mean_s=mean, share=mean / whole)
            )
    return phase_times
