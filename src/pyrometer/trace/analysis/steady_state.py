"""What of a record is no part of the steady state: its cold start, and ends at which work was in flight."""

from __future__ import annotations

from typing import Annotated

from pyrometer.record import Record, doc
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.steady.left_out import LeftOut
from pyrometer.trace.steady.steady import steady
from pyrometer.trace.trace import RankTrace


class SteadyState(Record, frozen=True, kw_only=True):
    """What a report leaves out."""

    span_ns: Annotated[int, doc("of what counts")]
    recorded_span_ns: Annotated[int, doc("of the whole record")]
    left_out: list[LeftOut] = []
    start_only: Annotated[
        list[LeftOut], doc("calls of a start that stay, since nothing tells whether they recur")
    ] = []


@analysis("steady")
def steady_state(trace: RankTrace) -> SteadyState:
    """What a report leaves out of the record: its cold start, and ends at which work was in flight."""
    found = steady(trace)
    return SteadyState(
        span_ns=found.trace.activity.span_ns,
        recorded_span_ns=trace.activity.span_ns,
        left_out=list(found.left_out),
        start_only=list(found.start_only),
    )
