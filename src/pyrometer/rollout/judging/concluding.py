"""What the tests of all metrics say together."""

from __future__ import annotations

from collections.abc import Sequence

from pyrometer.rollout.judging.judgement import Judgement, MetricTest


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
