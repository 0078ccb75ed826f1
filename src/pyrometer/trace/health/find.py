"""All checks of a trace, in the order in which their findings are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyrometer.trace.health import contents, recording, starting, times
from pyrometer.trace.health.issue import HealthIssue
from pyrometer.trace.trace import RankTrace

CHECKS: tuple[Callable[[RankTrace], Iterator[HealthIssue]], ...] = (
    recording.empty,
    recording.damage,
    recording.orphaned_work,
    recording.lost_work,
    recording.steps_without_work,
    starting.in_flight,
    starting.cold_start,
    times.clocks,
    times.strays,
    times.durations,
    times.overhead,
    times.nesting,
    times.streams,
    contents.contents,
    contents.graphs,
    contents.coverage,
)


def find_issues(trace: RankTrace) -> list[HealthIssue]:
    """Everything that is wrong with one rank's trace, the gravest first."""
    issues = [issue for check in CHECKS for issue in check(trace)]
    return sorted(issues, key=lambda issue: ("error", "warning", "info").index(issue.severity))
