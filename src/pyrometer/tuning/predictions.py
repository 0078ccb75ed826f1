"""How well predictions of findings held: what was predicted of levers beside what was measured of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated

import numpy as np

from pyrometer.quantity import Ratio
from pyrometer.record import Record, doc
from pyrometer.tuning.outcome import LeverOutcome

FEWEST = 3
"""Below so many pairs a correlation says nothing."""


class PredictedLever(Record, frozen=True, kw_only=True):
    """One lever whose gain a finding had predicted, and which was then timed."""

    run_id: str
    target: str
    lever: str
    rules: list[str]
    predicted_low: Ratio
    predicted_high: Ratio
    measured: Ratio
    measured_low: Ratio
    measured_high: Ratio
    learned: Annotated[Ratio, doc("by what the range was moved, from earlier searches on the machine")] = 1.0

    @property
    def name(self) -> str:
        """Of the lever, without its parameters."""
        return self.lever.partition("(")[0]

    @property
    def held(self) -> bool:
        """Whether the measured interval meets the predicted range."""
        return self.measured_low <= self.predicted_high and self.measured_high >= self.predicted_low

    @property
    def predicted(self) -> Ratio:
        """The geometric middle of the range."""
        return math.sqrt(max(self.predicted_low, 1e-3) * max(self.predicted_high, 1e-3))


class Predictions(Record, frozen=True, kw_only=True):
    """All levers of the store that were predicted and timed."""

    levers: list[PredictedLever]
    num_held: int
    rank_correlation: Annotated[
        float | None, doc("Spearman's, of predicted and measured ratios; null for fewer than three levers")
    ] = None


def predicted_levers(run_id: str, target: str, outcomes: Iterable[LeverOutcome]) -> list[PredictedLever]:
    """The levers of a search that were both predicted and timed."""
    return [
        PredictedLever(
            run_id=run_id,
            target=target,
            lever=each.label,
            rules=each.rules,
            predicted_low=each.predicted_low,
            predicted_high=each.predicted_high,
            measured=each.ratio,
            measured_low=each.ci_low,
            measured_high=each.ci_high,
            learned=each.learned,
        )
        for each in outcomes
        if each.predicted_low is not None
        and each.predicted_high is not None
        and each.ratio is not None
        and each.ci_low is not None
        and each.ci_high is not None
    ]


def judge_predictions(levers: Sequence[PredictedLever]) -> Predictions:
    """How many ranges held, and whether what was predicted to help more did.

    >>> judge_predictions([]).num_held
    0
    """
    from scipy import stats  # slow to import

    predicted = [lever.predicted for lever in levers]
    measured = [lever.measured for lever in levers]
    correlation = None
    if len(levers) >= FEWEST and len(set(predicted)) > 1 and len(set(measured)) > 1:
        correlation = float(stats.spearmanr(np.asarray(predicted), np.asarray(measured)).statistic)
    return Predictions(
        levers=list(levers), num_held=sum(lever.held for lever in levers), rank_correlation=correlation
    )
