"""Where the host waited for a device: calls that block by their name, and copies that are seen to block."""

from __future__ import annotations

import polars as pl

from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.copy_names import UNPINNED
from pyrometer.trace.naming.patterns import is_blocking_call
from pyrometer.trace.rows import among, row_numbers
from pyrometer.trace.trace import RankTrace, kept

SCOPES = (
    (r"Memcpy|memcpy", "copy"),
    (r"Free$", "allocator"),
    (r"StreamSynchronize", "stream"),
    (r"EventSynchronize", "event"),
    (r"(Device|Ctx|Context)Synchronize", "device"),
)
"""What a call waits for, by its name."""


@kept
def find_waits(trace: RankTrace) -> pl.DataFrame:
    """Calls in which a host thread waits for a device: `event, name, track, start_ns, end_ns, scope`, in order of start.

    A call counts when its name says that it blocks (`cudaStreamSynchronize`, `hipMemcpyWithStream`, `cudaFree`, …), or
    when it copies from or to pageable memory and returned only after its copy had ended.
    """
    calls = trace.of_kind(Kind.RUNTIME, Kind.DRIVER).select("event", "name", "track", "start_ns", "end_ns")
    unpinned = trace.chosen(trace.of_kind(Kind.MEMCPY), pl.col("name").str.contains(UNPINNED))
    copies = unpinned.filter(pl.col("parent").is_not_null())
    ended = copies.group_by(pl.col("parent").cast(pl.UInt32).alias("event")).agg(
        copied_ns=pl.col("end_ns").max()
    )
    blocked = calls.join(ended, on="event").filter(pl.col("copied_ns") <= pl.col("end_ns"))["event"]
    rows = row_numbers(calls["event"])
    chosen = trace.mask(is_blocking_call())[rows] | among(rows, row_numbers(blocked))
    scope = pl.lit("device")
    for pattern, name in reversed(SCOPES):
        scope = pl.when(pl.col("name").str.contains(pattern)).then(pl.lit(name)).otherwise(scope)
    return calls.filter(pl.Series(chosen)).with_columns(scope=scope)
