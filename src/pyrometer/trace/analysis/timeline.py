"""The timeline: slices per thread and stream, ready to be drawn."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.errors import InputError
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.timing.placing import place_slices
from pyrometer.trace.trace import RankTrace

SMALL = "(small)"
ROUNDS = 12


@analysis("timeline")
def timeline(trace: RankTrace, *, limit: int | None = None) -> pl.DataFrame:
    """Slices for drawing: track, lane, start, duration; overlaps on extra lanes, tiny slices merged when there are many.

    Args:
        trace: one rank.
        limit: about how many rows at most. Slices that are too short for it are merged with short neighbours on the same
            lane into one named `(small)`, over gaps no longer than themselves; a row per lane always remains.

    Returns:
        `track, lane, start_ns, dur_ns, name, kind, depth, num_events, event` in order of start: `num_events` is 1, or how
        many slices a merged row stands for (its `kind` is null, and `event` its first one), so that it always sums to the
        number of slices in the trace. On one lane no two slices overlap.

    Raises:
        InputError: `limit` is below 1.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit={limit}: at least one row is needed; leave it out for all")
    slices = place_slices(trace)
    whole = slices.select(
        "track",
        "lane",
        "start_ns",
        "dur_ns",
        "name",
        "kind",
        "depth",
        pl.lit(1, pl.UInt32).alias("num_events"),
        "event",
    )
    if limit is None or whole.height <= limit:
        return whole
    durations = np.sort(whole["dur_ns"].to_numpy())
    shortest = int(durations[max(len(durations) - max(limit // 2, 1), 0)])
    for _ in range(ROUNDS):
        found = _coarse(whole, shortest)
        if found.height <= limit:
            break
        shortest = 2 * shortest + 1
    else:
        found = _coarse(whole, int(np.iinfo(np.int64).max) // 2)
    return found


def _coarse(slices: pl.DataFrame, shortest_ns: int) -> pl.DataFrame:
    """Merge what is shorter, where it follows on its lane within the same length."""
    line = slices.sort("track", "lane", "start_ns", maintain_order=True)
    small = pl.col("dur_ns") < shortest_ns
    end = pl.col("start_ns") + pl.col("dur_ns")
    apart = (
        ~small
        | ~small.shift(1, fill_value=False)
        | (pl.col("track") != pl.col("track").shift(1))
        | (pl.col("lane") != pl.col("lane").shift(1))
        | (pl.col("start_ns") - end.shift(1) > shortest_ns)
    )
    return (
        line.with_columns(group=apart.fill_null(value=True).cum_sum(), end_ns=end)
        .group_by("group", maintain_order=True)
        .agg(
            pl.col("track", "lane", "start_ns").first(),
            (pl.col("end_ns").max() - pl.col("start_ns").first()).alias("dur_ns"),
            pl.when(pl.len() > 1).then(pl.lit(SMALL)).otherwise(pl.col("name").first()).alias("name"),
            pl.when(pl.len() == 1).then(pl.col("kind").first()).alias("kind"),
            pl.col("depth").min(),
            pl.len().cast(pl.UInt32).alias("num_events"),
            pl.col("event").first(),
        )
        .drop("group")
        .sort("start_ns", "track", "lane")
    )
