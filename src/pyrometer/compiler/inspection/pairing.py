"""Compiled against eager steps, in turn, in one process: what a step takes with and without torch.compile."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from pyrometer.bench.clock import clock_for
from pyrometer.bench.comparison.conclusion import conclude
from pyrometer.bench.comparison.decision import DecisionRule
from pyrometer.bench.comparison.interleaving import Side
from pyrometer.bench.comparison.trial import Trial
from pyrometer.bench.comparison.verdict import Verdict
from pyrometer.bench.stage import Progress
from pyrometer.quantity import Seconds
from pyrometer.workload.workload import Session

EAGER, COMPILED = "eager", "compiled"


class Paired(NamedTuple):
    """Steady step times, and what may be said of their ratio."""

    steady_s: Seconds
    eager_steady_s: Seconds | None
    """`None` where the eager steps are no measure."""
    verdict: Verdict


def compare_sessions(
    compiled: Session, eager: Session, budget_s: Seconds, progress: Progress | None = None
) -> Paired:
    """Run two open sessions in turn until it is decided which is faster, or the budget is spent.

    Times are medians of single steps, of the wall or the device. Of steps that are longer than the budget there is one each.

    Raises:
        UserProgramError: a step raised; says on which side.
    """
    sides = [
        Side(name, session, clock_for(session.device))
        for name, session in ((EAGER, eager), (COMPILED, compiled))
    ]
    trial = Trial(sides, DecisionRule(), budget_s, 0, progress)
    trial.run()
    eager_s, compiled_s = (_typical_s(trial, number) for number in range(2))
    return Paired(compiled_s, eager_s, conclude(trial, 1))


def undecided(paired: Paired, reason: str) -> Paired:
    """The same without anything that rests on the eager steps."""
    verdict = msgspec.structs.replace(
        paired.verdict, outcome="undecided", ci_low=None, ci_high=None, needed_s=None, reason=reason
    )
    return Paired(paired.steady_s, None, verdict)


def _typical_s(trial: Trial, side: int) -> Seconds:
    if not trial.blocks.rows:
        return trial.sides[side].first_call_s
    return float(np.median(np.concatenate(trial.blocks.times(side))))
