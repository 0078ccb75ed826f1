"""The largest batch within limits: what was tried, and what limits it."""

from __future__ import annotations

from typing import Annotated

from pyrometer.quantity import Bytes, Seconds
from pyrometer.record import Record, doc


class BatchTrial(Record, frozen=True, kw_only=True):
    """One batch size that was run."""

    batch: int
    predicted_bytes: Annotated[Bytes | None, doc("predicted peak; null where it cannot be predicted")] = None
    measured_bytes: Annotated[Bytes | None, doc("measured peak; null when it did not run to its end")] = None
    latency_s: Annotated[Seconds | None, doc("median of a step; null when it was not timed")] = None
    latency_low_s: Annotated[Seconds | None, doc("lower end of the median's interval")] = None
    latency_high_s: Annotated[Seconds | None, doc("upper end of the median's interval")] = None
    outcome: Annotated[
        str, doc("fits, too much memory, too slow, out of memory, not run, or failed: what was raised")
    ]


class LargestBatch(Record, frozen=True, kw_only=True):
    """The largest batch that keeps within the limits."""

    name: str
    batch: Annotated[
        int | None,
        doc("samples of one step, with accumulation of a micro-batch; null when not even one fits"),
    ]
    limited_by: Annotated[
        str, doc("memory, latency, trials (larger ones were not tried), or nothing, up to most_batch")
    ]
    memory_limit_bytes: Annotated[Bytes, doc("what the peak must keep within")]
    latency_limit_s: Annotated[Seconds | None, doc("what the upper end of the median must keep within")] = (
        None
    )
    most_batch: Annotated[int, doc("larger ones are not looked for")]
    predicted_bytes: Annotated[Bytes | None, doc("predicted peak at that batch")] = None
    measured_bytes: Annotated[Bytes | None, doc("measured peak at that batch; null when it was not run")] = (
        None
    )
    latency_s: Annotated[Seconds | None, doc("median of a step at that batch")] = None
    latency_low_s: Seconds | None = None
    latency_high_s: Seconds | None = None
    verified: Annotated[bool, doc("that batch was run, and kept within the limits")] = False
    tried: Annotated[list[BatchTrial], doc("in the order in which they ran")] = []
    sentence: str
    notes: list[str] = []
