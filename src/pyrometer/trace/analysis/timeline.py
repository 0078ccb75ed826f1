"""The timeline: slices per thread and stream, ready to be drawn."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from pyrometer.errors import InputError
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.rows import IntArray, Mask
from pyrometer.trace.timing.placing import place_slices
from pyrometer.trace.trace import RankTrace

SMALL = "(small)"
ROUNDS = 20
SLACK_ROWS = 10
SLACK_SHARE = 0.1


@analysis("timeline")
def timeline(trace: RankTrace, *, limit: int | None = None) -> pl.DataFrame:
    """Slices for drawing: track, lane, start, duration; overlaps on extra lanes, tiny slices merged when there are many.

    Args:
        trace: one rank.
        limit: about how many rows at most. As many neighbours on a lane as must be are merged into rows named `(small)`,
            those that are shortest together with the gap between them first, and never beyond a bucket of time, of which
            there are about `limit` over all lanes; a row per lane always remains.

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
    line = whole.sort("track", "lane", "start_ns", maintain_order=True)
    return _merged(line, _joined(line, limit))


def _merged(line: pl.DataFrame, joined: Mask) -> pl.DataFrame:
    """One row for each run of slices that are joined to the one before."""
    return (
        line.with_columns(group=pl.Series(~joined).cum_sum(), end_ns=pl.col("start_ns") + pl.col("dur_ns"))
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


def _joined(line: pl.DataFrame, limit: int) -> Mask:
    """Which slices are drawn with the one before them, so that about `limit` rows remain."""
    start, dur = (line[name].to_numpy().astype(np.int64) for name in ("start_ns", "dur_ns"))
    lane = np.cumsum(_changes(line["track"].to_numpy()) | _changes(line["lane"].to_numpy())) - 1
    least = len(start) - limit
    may = np.zeros(len(start), np.bool_)
    for width in _widths(start, dur, lane, limit):
        own = width[lane]
        bucket = (start - start.min()) // own
        short = dur <= own
        may[1:] = ~_changes(lane)[1:] & ~_changes(bucket)[1:] & short[1:] & short[:-1]
        if np.count_nonzero(may) >= least:
            break
    together = np.zeros(len(start), np.int64)
    together[1:] = start[1:] + dur[1:] - start[:-1]
    return _shortest(together, may, least, max(SLACK_ROWS, int(SLACK_SHARE * limit)))


def _widths(start: IntArray, dur: IntArray, lane: IntArray, limit: int) -> Iterator[IntArray]:
    """Longer and longer buckets of each lane, ns: as if it had all rows, then as its share of the slices is."""
    counts = np.bincount(lane)
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    span = np.maximum.reduceat(start + dur, first) - start[first]
    whole = int((start + dur).max() - start.min()) + 1
    yield np.full(len(counts), -(-whole // limit))
    rows = limit * counts / len(start)
    for _ in range(ROUNDS):
        yield np.ceil((span + 1) / np.maximum(np.floor(rows), 1)).astype(np.int64)
        rows = rows / 2
    yield np.full(len(counts), whole)


def _shortest(together: IntArray, may: Mask, least: int, slack: int) -> Mask:
    """The `least` pairs that are shortest together; equal ones all, or spread evenly where that is far too many."""
    pairs = np.flatnonzero(may)
    if len(pairs) <= least:
        return may
    length = together[pairs]
    longest = np.partition(length, least - 1)[least - 1]
    chosen = length <= longest
    if np.count_nonzero(chosen) > least + slack:
        equal = np.flatnonzero(length == longest)
        spare = least - np.count_nonzero(length < longest)
        steps = np.arange(len(equal) + 1) * spare // len(equal)
        chosen[equal] = np.diff(steps) > 0
    found = np.zeros(len(may), np.bool_)
    found[pairs[chosen]] = True
    return found


def _changes(values: IntArray) -> Mask:
    """Where a value differs from the one before; the first one does."""
    changes = np.ones(len(values), np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return changes
