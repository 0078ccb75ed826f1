"""When a step runs: until the host has left it and the device has done its work, after the step before.

A host that runs ahead leaves a step when it has enqueued it, long before the device has done it. The step of a trace
(`RankTrace.steps`) says which host events are its own, and whose launches; its window says how long it took.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.trace import RankTrace, kept


@kept
def step_windows(trace: RankTrace) -> pl.DataFrame:
    """The steps, of which `start_ns` and `end_ns` say when they ran on host and device; they do not overlap.

    A window ends no earlier than the step's device work, and begins no earlier than that of the step before has ended;
    that of the first step not before work has ended that was in flight when it began. Work that runs beside all
    of the next step would leave this one nothing: then the steps stay as they are on the host.
    """
    steps, work = trace.steps, trace.device_work
    own = (
        work.drop_nulls(["step", "parent"])
        .group_by("step")
        .agg(first=pl.col("start_ns").min(), done=pl.col("end_ns").max())
    )
    if not own.height:
        return steps
    placed = steps.join(own, on="step", how="left", maintain_order="left")
    low, high = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    done = np.minimum(placed["done"].fill_null(low[0]).to_numpy(), trace.span[1])
    end = np.maximum.accumulate(np.maximum(high, done))
    start = np.maximum(low, np.append(_in_flight(trace, int(low[0]), placed["first"][0]), end[:-1]))
    if trace.window is not None:  # of a part of the span
        start, end = np.clip(start, *trace.window), np.clip(end, *trace.window)
    if (end <= start).any():
        return steps
    return steps.with_columns(
        pl.Series("start_ns", start, dtype=pl.Int64), pl.Series("end_ns", end, dtype=pl.Int64)
    )


def _in_flight(trace: RankTrace, begin: int, first: int | None) -> int:
    """When the device had done what it was given before the first step began, at the latest when it began that step's work."""
    if first is None:
        return begin
    launched = trace.events["start_ns"].gather(trace.device_work["parent"])
    work = trace.device_work.select("start_ns", "end_ns", launched_ns=launched)
    launching = work.filter(pl.col("launched_ns") >= begin)["launched_ns"].cast(pl.Int64).min()
    unlaunched = work.filter(pl.col("launched_ns").is_null() & (pl.col("start_ns") < first))
    # Launched before the recording began is what runs before this step launches anything, and what is queued behind it.
    if unlaunched.filter(pl.col("start_ns") < launching).is_empty():
        unlaunched = unlaunched.head(0)
    done = pl.concat([work.filter(pl.col("launched_ns") < begin), unlaunched])["end_ns"].max()
    return min(done, first) if isinstance(done, int) else begin
