"""Device work beside the calls that launched it, and how much of it waits in each stream's queue."""

from __future__ import annotations

import polars as pl

from pyrometer.trace.kinds import CALLS
from pyrometer.trace.trace import RankTrace, kept


@kept
def launched(trace: RankTrace) -> pl.DataFrame:
    """Device work and the call that launched it: `event, device, stream, start_ns, …, call, call_start_ns, call_end_ns`."""
    columns = [
        "event",
        "kind",
        "name",
        "device",
        "stream",
        "track",
        "start_ns",
        "end_ns",
        "dur_ns",
        "step",
        "parent",
    ]
    work = trace.device_work.select(columns)
    calls = trace.of_kind(*CALLS).select(
        pl.col("event").cast(pl.Int32).alias("parent"),
        pl.col("start_ns").alias("call_start_ns"),
        pl.col("end_ns").alias("call_end_ns"),
    )
    return work.join(calls, on="parent", how="left", maintain_order="left").rename({"parent": "call"})


def queue_depth(trace: RankTrace) -> pl.DataFrame:
    """How much work waits per stream, as steps: `device, stream, ts_ns, depth`, each until the next row of its stream."""
    linked = launched(trace).filter(pl.col("call_start_ns").is_not_null())
    waits = linked.select(
        "device",
        "stream",
        "track",
        lower="call_start_ns",
        upper=pl.max_horizontal("start_ns", "call_start_ns"),
    )
    edges = pl.concat(
        [
            waits.select("device", "stream", "track", pl.col("lower").alias("ts_ns"), change=pl.lit(1)),
            waits.select("device", "stream", "track", pl.col("upper").alias("ts_ns"), change=pl.lit(-1)),
        ]
    )
    return (
        edges.group_by("track", "ts_ns")
        .agg(pl.col("device", "stream").first(), pl.col("change").sum())
        .sort("track", "ts_ns")
        .with_columns(depth=pl.col("change").cum_sum().over("track"))
        .select("track", "device", "stream", "ts_ns", "depth")
    )
