"""How far a trace may be trusted."""

from __future__ import annotations

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.health.find import find_issues
from pyrometer.trace.health.issue import Health
from pyrometer.trace.trace import RankTrace


@analysis("health")
def health(trace: RankTrace) -> Health:
    """What is wrong with the trace, how far that lowers confidence, and which analyses it falsifies."""
    issues = find_issues(trace)
    severities = {issue.severity for issue in issues}
    return Health(
        confidence="low" if "error" in severities else "medium" if "warning" in severities else "high",
        issues=issues,
        unreliable=sorted({name for issue in issues for name in issue.unreliable}),
    )
