"""How many points of the score each finding takes.

Half of what a finding is predicted to save, as a share of the step or of the peak, is the share that it takes of what is left
of the score: of a program of which half the time could be saved, a quarter. Findings that count the same cost take it
once. What has no measured cost takes a little, the same for everything of one item.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyrometer.rules.audit.record import Basis, Deduction
from pyrometer.rules.case import Case
from pyrometer.rules.finding import Finding
from pyrometer.rules.overlap import stands_within
from pyrometer.rules.ranking import promise

WEIGHT = 0.5
"""Of a share that can be saved. Predictions of one program differ by some hundredths from run to run; its score shall not differ by
more than two points either way."""

MOST = 0.75
BEYOND = 0.25
"""What is saved of a step beyond three quarters counts for a quarter: whether four or ten times as fast is possible predictions hardly tell
apart, but what wastes all of a step stands below what wastes most of it."""

WRONG = 0.2
"""For what makes results wrong or memory run out, where the share that was measured is not larger."""

UNMEASURED = 0.05
"""For an item that fails on what nothing of the run measures."""

REMARK = 0.01
"""For an item that fails on what stands in the text only: the run that could have confirmed it did not."""


class Breach(NamedTuple):
    """A finding, as the checklist sees it.

    Attributes:
        finding: what a rule found.
        excused: why the user ignores it; null where nobody does.
        confirmed: false where only the text shows it.
    """

    finding: Finding
    excused: str | None = None
    confirmed: bool = True


class Score:
    """What is left of 100 points."""

    def __init__(self) -> None:
        self.points = 100.0

    def take(self, share: float) -> float:
        """Take a share of what is left; the points that this was."""
        points = self.points * min(1.0, max(0.0, share))
        self.points -= points
        return points


def deduct(
    score: Score, breaches: Sequence[Breach], items: Iterable[str | None], case: Case
) -> list[Deduction]:
    """What each breach takes, in this order.

    Args:
        score: is lowered.
        breaches: ranked, so that what overlaps follows what it overlaps with.
        items: the item of each breach, which takes what is not measured once.
        case: whose step and peak costs are shares of.
    """
    counted: list[tuple[Finding, float]] = []
    charged: set[str] = set()
    deductions = []
    for breach, item in zip(breaches, items, strict=True):
        finding, code = breach.finding, breach.finding.code
        share, basis = _share(breach, case)
        if basis in ("step", "peak"):
            before = max((taken for other, taken in counted if _same_cost(other, finding, case)), default=0.0)
            counted.append((finding, max(share, before)))
            taken = WEIGHT * (share - before) / (1 - WEIGHT * before) if share > before else 0.0
        else:
            taken = 0.0 if item in charged or finding.overlaps else share
        if item is not None:
            charged.add(item)
        deductions.append(
            Deduction(
                code=code,
                message=finding.message,
                where=finding.where,
                points=score.take(taken) if item is not None else 0.0,
                share=share if basis in ("step", "peak") else None,
                basis=basis,
                ignored=breach.excused,
            )
        )
    return deductions


def _same_cost(other: Finding, finding: Finding, case: Case) -> bool:
    """Whether what one finding counts is part of what another does: it overlaps, or stands within the other's loop."""
    if other.code in finding.overlaps:
        return True
    first, second = other.where, finding.where
    return stands_within(first, second, case.modules) or stands_within(second, first, case.modules)


def _share(breach: Breach, case: Case) -> tuple[float, Basis]:
    finding = breach.finding
    cost, gain = finding.cost, finding.advice.gain
    if not breach.confirmed:
        return REMARK, "text"
    measured = _saved(finding, case)
    if finding.severity == "error" and WEIGHT * measured < WRONG:
        return WRONG, "results"
    if cost is None and gain is None:
        return UNMEASURED, "unmeasured"
    in_time = (gain is not None and gain.ratio_low is not None) or (cost is not None and cost.bytes is None)
    return measured - (1 - BEYOND) * max(0.0, measured - MOST), "step" if in_time else "peak"


def _saved(finding: Finding, case: Case) -> float:
    """The share of the step or of the peak that the advice saves; half of a cost that is known in seconds only."""
    promised = promise(finding, case.memory.peak_bytes if case.memory is not None else None)
    seconds = finding.cost.seconds_per_step if finding.cost is not None else None
    if promised or finding.advice.gain is not None or not seconds or not case.step_s:
        return promised
    return min(1.0, seconds / case.step_s) / 2
