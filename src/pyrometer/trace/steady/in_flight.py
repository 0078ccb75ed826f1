"""Work that was in flight when recording began or ended: the device was busy with what is not in the record.

At the start. Work that was launched before recording began leaves no record, or one without its launch. Where nothing
is recorded on the devices, though launches had long returned, their work was waiting behind it: from the first work on
the record is complete. That a delay of launch to start is no clock's mistake follows from a shorter one elsewhere, or from a
device that is busy ever after.

At the end. Launches after the last that left work were still waiting when recording ended: up to the end of the last
work the record is complete.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.kinds import CALLS, HOST
from pyrometer.trace.steady.left_out import LeftOut
from pyrometer.trace.timing.intervals import length
from pyrometer.trace.timing.queues import launched
from pyrometer.trace.trace import RankTrace

WAITED_NS = 1_000_000
"""A launch that has returned starts its work within microseconds on a device that has nothing to do."""

FEWEST = 3
"""Launches that must have been waiting, or one for `LONG_NS`: a graph of many kernels is one launch."""

LONG_NS = 5_000_000

BUSY = 0.9
"""Share of the time after the first work, from which on the queue never drained."""


def in_flight_at_start(trace: RankTrace) -> LeftOut | None:
    """What lies before the first recorded work, if launches waited there for work that is not in the record."""
    work = launched(trace).filter(pl.col("call_end_ns").is_not_null())
    began = trace.device_work["start_ns"].min()
    if not work.height or not isinstance(began, int):
        return None
    delays = (work["start_ns"] - work["call_end_ns"]).to_numpy()
    waiting = work.filter(pl.col("call_end_ns") <= began - WAITED_NS)["call"].n_unique()
    first = int(np.argmin(work["start_ns"].to_numpy()))
    delay, activity = int(delays[first]), trace.activity
    queued = delay - int(delays.min()) >= WAITED_NS or length(activity.device) >= BUSY * (
        activity.end_ns - began
    )
    waited = delay >= (WAITED_NS if waiting >= FEWEST else LONG_NS)
    if not waiting or not waited or began - activity.start_ns < WAITED_NS or not queued:
        return None
    return LeftOut(
        reason="in_flight_at_start",
        name=work["name"][first],
        count=waiting,
        start_ns=activity.start_ns,
        end_ns=began,
        span_ns=began - activity.start_ns,
        longest_ns=delay,
    )


def in_flight_at_end(trace: RankTrace) -> LeftOut | None:
    """What lies after the last recorded work, if launches waited there whose work is not in the record."""
    work, ended = trace.device_work, trace.device_work["end_ns"].max()
    if not isinstance(ended, int) or not work["parent"].count():
        return None
    last = int(trace.events["start_ns"].gather(work["parent"].drop_nulls().cast(pl.UInt32)).max())  # type: ignore[arg-type]  # not empty
    lost = _launches(trace, last)
    rest = trace.activity.end_ns - ended
    if not FEWEST <= lost.height <= work["parent"].n_unique() or rest < WAITED_NS:
        return None
    return LeftOut(
        reason="in_flight_at_end",
        name=lost["name"][0],
        count=lost.height,
        start_ns=ended,
        end_ns=trace.activity.end_ns,
        span_ns=rest,
        longest_ns=trace.activity.end_ns - int(lost["end_ns"].min()),  # type: ignore[arg-type]  # not empty
    )


def _launches(trace: RankTrace, since: int) -> pl.DataFrame:
    """Launching calls after a moment, of names that launched something before; those that a graph captures leave no work."""
    calls = trace.of_kind(*CALLS)
    if trace.chosen(calls, pl.col("name").str.contains("(?i)BeginCapture")).height:
        return calls.clear()
    names = trace.events["name"].gather(trace.device_work["parent"].drop_nulls().cast(pl.UInt32).unique())
    later = trace.chosen(calls.filter(pl.col("start_ns") > since), pl.col("name").str.contains("(?i)launch"))
    return later.filter(pl.col("name").is_in(names.unique().implode())) if later.height else later


def started_before(trace: RankTrace) -> tuple[int, int] | None:
    """Device work at the start whose launch is not in the record: how many pieces, and until when; only where host events are."""
    work = trace.device_work
    linked = work["parent"].is_not_null().to_numpy()
    if not trace.number_of(*HOST) or not linked.any() or linked[0]:
        return None
    pieces = int(np.argmax(linked))
    return pieces, int(work["end_ns"].to_numpy()[:pieces].max())
