"""Time in steps in which the host stood still, as where another process had the processor."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.difference.change import MIN_STEPS, Times
from pyrometer.trace.timing.intervals import Intervals, covered, subtract, union
from pyrometer.trace.timing.step_windows import step_windows
from pyrometer.trace.trace import RankTrace

SHORTEST_NS = 1_000_000
"""No shorter than what a scheduler gives to another process before it comes back."""

TIMES_USUAL = 1.5
"""A pause is what takes this many times as long as the same place takes in a quick step."""

PLACE = ["track", "name", "before", "nth"]


def find_pauses(trace: RankTrace) -> Times:
    """Nanoseconds of each step in which a thread was held up where others are not.

    The time of host threads is cut up by the innermost open event. The same piece of each step, known by its event, by the
    piece before it and by how many of these came before in the step, takes about the same time; what one takes beyond their
    lower quartile, if it is half as long again and more than a millisecond, is a pause. Waits for a data loader are none.
    """
    windows = step_windows(trace).select("start_ns", "end_ns")
    low, high = windows["start_ns"].to_numpy(), windows["end_ns"].to_numpy()
    if len(low) < MIN_STEPS:
        return np.zeros(len(low), np.int64)
    pauses = subtract(_beyond_usual(_pieces(trace, low)), trace.activity.data)
    return covered(pauses, low, high)


def _pieces(trace: RankTrace, step_starts: Times) -> pl.DataFrame:
    start, end, event = trace.links.pieces
    step = np.searchsorted(step_starts, start, side="right")
    events = trace.events.select("track", name=pl.col("name").cast(pl.String).str.replace(r"#\d+$", ""))
    pieces = events[event].with_columns(
        start=pl.Series(start), ns=pl.Series(end - start), step=pl.Series(step)
    )
    return pieces.with_columns(before=pl.col("name").shift().over("track")).with_columns(
        nth=pl.int_range(pl.len()).over("step", "track", "name", "before")
    )


def _beyond_usual(pieces: pl.DataFrame) -> Intervals:
    ns, usual = pl.col("ns"), pl.col("ns").quantile(0.25).over(PLACE)
    is_pause = (ns > TIMES_USUAL * usual) & (ns > usual + SHORTEST_NS) & (pl.len().over(PLACE) >= MIN_STEPS)
    pauses = pieces.with_columns(usual=usual.cast(pl.Int64)).filter(is_pause)
    start = pauses["start"].to_numpy()
    return union(start + pauses["usual"].to_numpy(), start + pauses["ns"].to_numpy())
