"""The breakdown over time: the same parts, slice by slice."""

from __future__ import annotations

import numpy as np

from pyrometer.trace.analysis.breakdown import parts_of
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.records.breakdown import OverTime, Parts
from pyrometer.trace.trace import RankTrace

SLICES = 120


@analysis("over_time")
def over_time(trace: RankTrace, *, slices: int = SLICES) -> OverTime:
    """Where the time went, slice by slice of the span.

    Args:
        trace: one rank.
        slices: of equal length, up to a nanosecond; fewer where the span has fewer nanoseconds.
    """
    activity = trace.activity
    count = max(min(slices, activity.span_ns), 1)
    edges = activity.start_ns + activity.span_ns * np.arange(count + 1, dtype=np.int64) // count
    parts = parts_of(activity, edges[:-1], edges[1:])
    columns = {name: [getattr(part, name) for part in parts] for name in Parts.__struct_fields__}
    return OverTime(
        edges_ns=edges.tolist(), parts={name: values for name, values in columns.items() if any(values)}
    )
