"""What usually passes between a cause and its effect, taken from the cases of this trace in which nothing else held up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.dependencies.waits import Waits
from pyrometer.trace.dependencies.work import NEVER, Work
from pyrometer.trace.rows import IntArray, each_once

FEW = 5
"""With fewer observations than these there are no quantiles: the shortest is typical."""
USUAL_LAUNCH_NS = 5_000
USUAL_QUEUE_NS = 1_500
USUAL_WAKE_NS = 5_000
USUAL_CALL_NS = 3_000
"""Stand in where a trace has no case to observe; of the order that current hardware shows."""


@dataclass(frozen=True)
class Latency:
    """Half of the observed cases are at most `typical`, nine of ten at most `high`; ns.

    `high` is at most ten times what is typical: a longer delay has a cause of its own.
    """

    typical: int
    high: int


@dataclass(frozen=True)
class Latencies:
    """The delays of one trace."""

    launch: Latency  # from the start of a call to the start of its work on an empty stream
    queue: Latency  # from the end of work to the start of the next that was queued behind it
    wake: Latency  # from the end of the work that a call waits for to the end of the call
    own: IntArray  # per waiting call: what it takes when there is nothing to wait for


def latency(observed: IntArray, usual: int) -> Latency:
    """Typical and high value of a delay.

    >>> latency(np.array([3, 4, 5, 6, 50]), usual=1)
    Latency(typical=5, high=50)
    """
    observed = np.sort(observed[observed >= 0])
    if not len(observed):
        return Latency(usual, usual)
    if len(observed) < FEW:
        typical = min(int(observed[0]), 10 * usual)
        return Latency(typical, max(typical, usual))
    typical = int(observed[len(observed) // 2])
    return Latency(typical, min(int(observed[len(observed) * 9 // 10]), 10 * max(typical, usual)))


def find_latencies(events: pl.DataFrame, work: Work, waits: Waits) -> Latencies:
    """Observe the delays of one trace."""
    previous = np.where(work.before >= 0, work.end[work.before], NEVER) if len(work) else work.end
    known = work.call >= 0
    free = known & (previous <= work.launched) & ~_follows_other_work(work, work.launched)
    launch = latency((work.start - work.launched)[free], USUAL_LAUNCH_NS)
    queued = known & (work.before >= 0) & (work.launched + launch.typical <= previous)
    queued &= ~_follows_other_work(work, previous)
    queue = latency(work.start[queued] - previous[queued], USUAL_QUEUE_NS)
    calls = events.select("name", "start_ns", "end_ns", "dur_ns")[waits.event]
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    ready = np.full(len(start), NEVER, np.int64)
    np.maximum.at(ready, waits.of, work.end[waits.work])
    held = ready > start
    wake = latency(end[held] - ready[held], USUAL_WAKE_NS)
    return Latencies(launch, queue, wake, _own(calls.with_columns(held=pl.Series(held, dtype=pl.Boolean))))


def _follows_other_work(work: Work, since: IntArray) -> npt.NDArray[np.bool_]:
    """Whether work of its device ended between this moment and its start: it may have waited for that, not for its stream.

    Where half of the work waits for another stream, as in training with sharded weights, such waits would else be what is usual.
    """
    found = np.zeros(len(work), bool)
    for device in each_once(work.device).tolist():
        mine = np.flatnonzero((work.device == device) & (work.end > work.start))
        ends = np.sort(work.end[mine])
        until = np.searchsorted(ends, work.start[mine], side="right")
        found[mine] = until > np.searchsorted(ends, since[mine], side="right")
    return found


def _own(calls: pl.DataFrame) -> IntArray:
    """A call that took no longer than usual when nothing was awaited did not wait, even where work just ended."""
    free = pl.col("dur_ns").filter(~pl.col("held"))
    usual = free.median().over("name")
    plain = (free.len().over("name") >= FEW) & (pl.col("dur_ns") <= 2 * usual)
    own = pl.when(plain).then("dur_ns").otherwise(pl.min_horizontal(usual.fill_null(USUAL_CALL_NS), "dur_ns"))
    return calls.select(own.cast(pl.Int64)).to_series().to_numpy()
