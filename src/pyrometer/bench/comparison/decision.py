"""When paired blocks are enough, and what they then decide. Pure: blocks in, decision out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np

from pyrometer.bench.autocorrelation import Floats
from pyrometer.bench.comparison.pairing import drifts, hodges_lehmann, merged
from pyrometer.bench.comparison.verdict import Outcome
from pyrometer.errors import InputError
from pyrometer.record import Record, doc

LOOKS = (20, 40, 80, 160)
THOROUGH_LOOKS = (20, 40, 80, 160, 320, 640)
DEFAULT_MARGIN = 0.05
THOROUGH_MARGIN = 0.02
DEFAULT_CONFIDENCE = 0.99
SMALLEST_EFFECT = 0.02
DIFFERENCE_SHARE = 0.4
"""Of the error probability, for claims of a difference: that a difference is missed costs less than one that is not there."""


class DecisionRule(Record, frozen=True, kw_only=True):
    """How a comparison is decided; fixed before the first block is run.

    The blocks are looked at only at the counts in `looks` and when the time is over. The error probability is shared
    equally among the looks (Bonferroni) and among `num_comparisons`, so that stopping early does not inflate false alarms;
    when the time is over before all looks were taken, the last one has the share of those that were not.
    """

    confidence: Annotated[float, doc("coverage of the interval over all looks together")] = DEFAULT_CONFIDENCE
    margin: Annotated[float, doc("half-width of the zone called the same")] = DEFAULT_MARGIN
    looks: Annotated[tuple[int, ...], doc("block counts at which a decision may be taken")] = LOOKS
    num_comparisons: Annotated[int, doc("comparisons that share the error probability")] = 1
    difference_share: Annotated[
        float, doc("part of the error probability that claims of a difference may spend")
    ] = DIFFERENCE_SHARE

    def __post_init__(self) -> None:
        if not 0.5 <= self.confidence < 1:
            raise InputError(
                f"confidence: got {self.confidence}; legal is from 0.5 to below 1, for example 0.99"
            )
        if not 0 < self.margin < 1:
            raise InputError(
                f"margin: got {self.margin}; legal is above 0 and below 1, for example 5% or 0.05"
            )

    @property
    def smallest_effect(self) -> float:
        """An estimate nearer to 1 than this is not called a difference: 2 %, or two fifths of a narrower margin."""
        return min(SMALLEST_EFFECT, 0.4 * self.margin)

    @property
    def alpha_per_look(self) -> float:
        """Error probability of one look."""
        return (1 - self.confidence) / (len(self.looks) * self.num_comparisons)

    def looks_left(self, num_looks: int) -> int:
        """Whose error probability the look at the end of the budget has, after so many planned ones.

        >>> DecisionRule().looks_left(0), DecisionRule().looks_left(3), DecisionRule().looks_left(4)
        (4, 1, 1)
        """
        return max(len(self.looks) - num_looks, 1)

    def with_longer_looks(self) -> DecisionRule:
        """The same for blocks of half as many calls: one more look, so that as many calls can be looked at."""
        return msgspec.structs.replace(self, looks=(*self.looks, 2 * self.looks[-1]))


@dataclass(frozen=True)
class Decision:
    """What the blocks say at one look; ratios are natural logarithms.

    Attributes:
        outcome: `None` as long as more blocks could still decide it.
        used: blocks that counted after a drifting start was dropped.
    """

    outcome: Outcome | None
    estimate: float
    low: float
    high: float
    used: int
    drifting: bool = False


def decide(log_ratios: Floats, rule: DecisionRule, num_looks: int = 1) -> Decision:
    """Look at the blocks so far.

    `slower` or `faster` when the interval excludes 1 and the estimate exceeds the smallest effect; `same` when the interval
    lies inside the margin; otherwise no outcome yet. A drifting effect loses its first third once; if it drifts
    still, it is not decided. Claims of a difference have their share of the error probability, and thus a wider interval.

    Args:
        log_ratios: one value per block.
        rule: what decides.
        num_looks: how many looks this one stands for; more than one when the time is over before the others.

    >>> rng = np.random.default_rng(1)
    >>> decide(rng.normal(math.log(1.10), 0.02, 40), DecisionRule()).outcome
    'slower'
    >>> decide(rng.normal(0.0, 0.02, 40), DecisionRule()).outcome
    'same'
    """
    blocks = np.asarray(log_ratios, dtype=np.float64)
    if drifts(blocks, rule.smallest_effect):
        blocks = blocks[len(blocks) // 3 :]
    drifting = drifts(blocks, rule.smallest_effect)
    blocks = merged(blocks)
    alpha = rule.alpha_per_look * num_looks
    estimate, low, high = hodges_lehmann(blocks, alpha * rule.difference_share)
    outcome = None if drifting else outcome_of(estimate, low, high, rule)
    if outcome is None and not drifting:
        _, nearer_low, nearer_high = hodges_lehmann(blocks, alpha)
        if outcome_of(estimate, nearer_low, nearer_high, rule) == "same":
            return Decision("same", estimate, nearer_low, nearer_high, len(blocks))
    return Decision(outcome, estimate, low, high, len(blocks), drifting)


def outcome_of(estimate: float, low: float, high: float, rule: DecisionRule) -> Outcome | None:
    """What an estimate with its interval decides; `None` when it decides nothing.

    >>> outcome_of(0.05, 0.01, 0.09, DecisionRule()), outcome_of(0.0, -0.1, 0.1, DecisionRule())
    ('slower', None)
    """
    effect = math.log1p(rule.smallest_effect)
    if low > 0 and estimate > effect:
        return "slower"
    if high < 0 and estimate < -effect:
        return "faster"
    margin = math.log1p(rule.margin)
    return "same" if high < margin and low > -margin else None
