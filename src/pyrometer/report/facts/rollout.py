"""What a rollout has found, in words and tables."""

from __future__ import annotations

from datetime import UTC, datetime

from pyrometer.quantity import format_seconds
from pyrometer.report.facts.layout import Fact, Table
from pyrometer.report.history_documents import RolloutDocument
from pyrometer.rollout.judging.judgement import MetricTest
from pyrometer.rollout.state import Decision


def headline(document: RolloutDocument) -> str:
    """Where it stands."""
    ended = document.state in {"promoted", "rolled back", "aborted"}
    where = document.state if ended else f"{document.state} at {percent(document.share)}"
    return f"{where} · {document.old} → {document.new}"


def reason(document: RolloutDocument) -> str:
    """Why it stands there: of one that has ended, what decided it."""
    if document.state in {"promoted", "rolled back", "aborted"} and document.decisions:
        return document.decisions[-1].reason
    return document.reason


def percent(share: float) -> str:
    """A share in percent, with the digits that it needs.

    >>> percent(0.01), percent(0.2), percent(0.0025)
    ('1 %', '20 %', '0.25 %')
    """
    return f"{100 * share:.3g} %"


def figures(document: RolloutDocument) -> list[Fact]:
    """Share, stage and observations."""
    return [
        Fact("share", percent(document.share)),
        Fact(
            "stage", f"{document.stage} of {len(document.stages)}", ", ".join(map(percent, document.stages))
        ),
        Fact("time in stage", format_seconds(document.elapsed_s)),
        Fact("observations", f"{document.num_new:,} new, {document.num_old:,} old", "in this stage"),
    ]


def test_table(tests: list[MetricTest]) -> Table:
    """One row per metric."""
    columns = ("metric", "new over old", "interval", "margin", "evidence of harm", "outcome", "for reference")
    return Table(columns, [_row(test) for test in tests], frozenset({5, 6}))


def _row(test: MetricTest) -> tuple[str, ...]:
    evidence = "–" if test.e_value is None else f"{test.e_value:.3g} of {test.needed:.0f}"
    return (
        test.metric, ratio(test.estimate), interval(test), ratio(test.margin), evidence, test.outcome, reference(test)
    )  # fmt: skip


def interval(test: MetricTest) -> str:
    """Both ends, where they are known."""
    if test.ci_low is None and test.ci_high is None:
        return "–"
    return f"{ratio(test.ci_low)} to {'∞' if test.ci_high is None else ratio(test.ci_high)}"


def ratio(value: float | None) -> str:
    """A ratio, or a share."""
    return "–" if value is None else f"{value:.3g}"


def reference(test: MetricTest) -> str:
    """What other tools would say."""
    if test.p_value is not None and test.improvement is not None:
        return f"Welch p = {test.p_value:.2g}, improvement {test.improvement:+.1%}"
    if test.share_new is not None and test.share_old is not None:
        return f"{test.share_new:.3%} new, {test.share_old:.3%} old"
    return "–"


def decision_table(decisions: list[Decision]) -> Table:
    """One row per decision, the newest last."""
    rows = [(clock(one.at_s), one.action, percent(one.share), one.reason, one.by) for one in decisions]
    return Table(("time", "decision", "share", "reason", "by"), rows, frozenset({1, 3, 4}))


def clock(at_s: float) -> str:
    """A Unix time.

    >>> clock(0)
    '01-01 00:00:00 UTC'
    """
    return f"{datetime.fromtimestamp(at_s, UTC):%m-%d %H:%M:%S} UTC"
