"""How many points of the score each finding takes.

What a finding is predicted to save, as a share of the step or of the peak, is the share that it takes of what is left of the
score: a program of which half the time could be saved has half of it. Findings that count the same cost take it
once. What has no measured cost takes a little, the same for everything of one item.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyrometer.rules.audit.record import Basis, Deduction
from pyrometer.rules.finding import Finding
from pyrometer.rules.ranking import promise

WRONG = 0.2
"""For what makes results wrong or memory run out, where the share that was measured is not larger."""

UNMEASURED = 0.03
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
    score: Score, breaches: Sequence[Breach], items: Iterable[str | None], peak_bytes: int | None
) -> list[Deduction]:
    """What each breach takes, in this order.

    Args:
        score: is lowered.
        breaches: ranked, so that what overlaps follows what it overlaps with.
        items: the item of each breach, which takes what is not measured once.
        peak_bytes: of memory, to weigh bytes.
    """
    counted: dict[str, float] = {}
    charged: set[str] = set()
    deductions = []
    for breach, item in zip(breaches, items, strict=True):
        finding, code = breach.finding, breach.finding.code
        share, basis = _share(breach, peak_bytes)
        if basis in ("step", "peak"):
            before = max((counted.get(other, 0.0) for other in finding.overlaps), default=0.0)
            counted[code] = max(share, before, counted.get(code, 0.0))
            taken = (share - before) / (1 - before) if share > before else 0.0
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


def _share(breach: Breach, peak_bytes: int | None) -> tuple[float, Basis]:
    finding = breach.finding
    measured = promise(finding, peak_bytes) if breach.confirmed else 0.0
    floor = WRONG if breach.confirmed and finding.severity == "error" else 0.0
    if measured > floor:
        gain = finding.advice.gain
        in_time = (gain is not None and gain.ratio_low is not None) or (
            finding.cost is not None and finding.cost.share is not None
        )
        return measured, "step" if in_time else "peak"
    if floor:
        return floor, "results"
    return (UNMEASURED, "unmeasured") if breach.confirmed and finding.cost is None else (REMARK, "text")
