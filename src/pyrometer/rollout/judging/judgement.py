"""What the judge says, of one metric and of all together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pyrometer.record import Record, doc

MOST_LOG = 700.0
"""Evidence is told up to e^700: larger ones are no numbers any more."""

Outcome = Literal["worse", "safe", "undecided", "not proved", "mismatch"]


class MetricTest(Record, frozen=True, kw_only=True):
    """One metric, as far as it is known."""

    metric: str
    estimate: Annotated[
        float | None, doc("ratio of new over old; of agreement the share that differs; null before enough")
    ] = None
    ci_low: Annotated[float | None, doc("not below this, at any time, unless one in 1/alpha is wrong")] = None
    ci_high: float | None = None
    e_value: Annotated[float | None, doc("evidence of harm; it is proved at `needed`")] = None
    needed: Annotated[float, doc("number of metrics over alpha")]
    margin: Annotated[float, doc("what the interval has to stay within for the next stage")]
    outcome: Literal["worse", "safe", "undecided"]
    num_new: Annotated[int, doc("observations, or events of a rate")] = 0
    num_old: int = 0
    share_new: Annotated[float | None, doc("of observations with the event")] = None
    share_old: float | None = None
    p_value: Annotated[
        float | None, doc("Welch's test, for reference: whoever looks more than once must not use it")
    ] = None
    improvement: Annotated[float | None, doc("1 less the estimate, for reference")] = None


class Guard(Record, frozen=True, kw_only=True):
    """Something that needs no statistics to be wrong."""

    guard: str
    said: str
    value: float
    limit: float


class Judgement(Record, frozen=True, kw_only=True):
    """Of all that was counted so far, against the next stage."""

    outcome: Annotated[
        Outcome,
        doc(
            "worse: take it back; safe: the next stage may come; mismatch: the assignment is broken, nothing counts; not proved: "
            "replicas without what their test needs"
        ),
    ]
    reason: str
    is_final: Annotated[bool, doc("whether more of the same observations would hardly change it")] = False
    tests: list[MetricTest] = []
    guards: list[Guard] = []
    num_new: Annotated[int, doc("observations of the new version in this stage")] = 0
    num_old: int = 0
    num_all: Annotated[int, doc("observations of the new version in all stages")] = 0
    mismatch_e_value: Annotated[float | None, doc("evidence that versions did not get their shares")] = None


def conclude(tests: Sequence[MetricTest]) -> Judgement:
    """Worse where one metric is, safe where all are."""
    worse = [test for test in tests if test.outcome == "worse"]
    if worse:
        worst = max(worse, key=lambda test: test.e_value or 0.0)
        return Judgement(outcome="worse", reason=_proved(worst), tests=list(tests))
    unsure = [test.metric for test in tests if test.outcome == "undecided"]
    if unsure:
        return Judgement(
            outcome="undecided", reason=f"not ruled out yet: harm to {', '.join(unsure)}", tests=list(tests)
        )
    return Judgement(outcome="safe", reason="harm beyond the margin is ruled out for every metric", tests=list(tests))  # fmt: skip


def _proved(test: MetricTest) -> str:
    figures = f"{test.estimate:.2f} ({test.ci_low:.2f} to {test.ci_high:.2f})"
    return (
        f"{test.metric}: {figures} of the old version, evidence {test.e_value:.3g} of {test.needed:g} needed"
    )
