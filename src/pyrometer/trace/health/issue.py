"""What a defect of a trace is, and what it makes unreliable."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.record import Record, doc

Severity = Literal["info", "warning", "error"]

TOTALS = ("breakdown", "idle", "operators", "kernels")
PER_STEP = ("breakdown", "idle", "difference")
"""`difference` is the comparison with another trace, `diff_traces`; all other names are analyses."""
LINKED = ("launches", "operators", "critical_path", "what_if")


class HealthIssue(Record, frozen=True, kw_only=True):
    """One defect or limit of a trace."""

    code: str
    severity: Severity
    message: Annotated[str, doc("fact, value, what it falsifies, what to do")]
    unreliable: Annotated[list[str], doc("analyses whose figures it falsifies")] = []
    count: Annotated[int | None, doc("events, launches or steps concerned")] = None
    share: Annotated[float | None, doc("of the events of that sort")] = None


class Health(Record, frozen=True, kw_only=True):
    """How far the figures of a trace may be trusted."""

    confidence: Annotated[
        Literal["high", "medium", "low"], doc("low with an error, medium with a warning, else high")
    ]
    issues: Annotated[list[HealthIssue], doc("the gravest first")] = []
    unreliable: Annotated[list[str], doc("analyses that some issue falsifies")] = []
