"""Gaps: stretches in which a device had nothing to do, and why it had drained."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.kinds import Kind
from pyrometer.trace.rows import IntArray, pick, row_numbers
from pyrometer.trace.timing.intervals import Intervals, complement, covered, merge, subtract, union
from pyrometer.trace.timing.waits import find_waits
from pyrometer.trace.trace import RankTrace

TURNAROUND_NS = 30_000
"""A gap up to this length before work that had been launched in time is the device's own turn-around; the limit that
other tools use for consecutive kernels."""


ISSUING_NS = 1_000_000
"""A pause up to this length before a short kernel's or a collective's successor is the host issuing that; a longer one has other
reasons."""


def device_gaps(trace: RankTrace) -> pl.DataFrame:
    """Gaps between the work of each device: `device, start_ns, end_ns, previous, next, launch, cause`.

    `previous` and `next` are the device work on both sides, `launch` the call that launched `next` (null when it is
    not in the trace), all rows of `events`. `cause` is

    - `sync_drain`: a call that waits for the device was running when it drained, so that nothing could be queued;
    - `between_collectives`: the same as `launch_starvation`, between two collectives that follow each other within
      `ISSUING_NS` with nothing to compute between them: the host issues them one by one;
    - `launch_starvation`: the call that launched the next work had not returned when the device drained;
    - `turnaround`: the next work had been launched in time, and the gap is at most `TURNAROUND_NS`;
    - `dependency`: the next work had been launched in time, and waited for something else: an event, another rank;
    - `unknown`: the next work names no launch in the trace.
    """
    work = trace.device_work.with_columns(pl.col("device").fill_null(-1))
    tables = [gaps_between(rows).with_columns(device=device) for device, rows in _by(work, "device")]
    gaps = pl.concat(tables) if tables else _no_gaps()
    waits, pauses = find_waits(trace), _between_collectives(trace)
    in_sync = _touched(waits["start_ns"].to_numpy(), waits["end_ns"].to_numpy(), gaps["start_ns"].to_numpy())
    issuing = _touched(pauses.start, pauses.end - 1, gaps["start_ns"].to_numpy())
    gaps = gaps.with_columns(launched_ns=pick(trace.events["end_ns"], row_numbers(gaps["launch"])))
    return gaps.with_columns(
        cause=pl.when(pl.Series(in_sync))
        .then(pl.lit("sync_drain"))
        .when(pl.col("launch").is_null())
        .then(pl.lit("unknown"))
        .when(pl.col("launched_ns") > pl.col("start_ns"))
        .then(
            pl.when(pl.Series(issuing))
            .then(pl.lit("between_collectives"))
            .otherwise(pl.lit("launch_starvation"))
        )
        .when(pl.col("end_ns") - pl.col("start_ns") <= TURNAROUND_NS)
        .then(pl.lit("turnaround"))
        .otherwise(pl.lit("dependency"))
    )


def _between_collectives(trace: RankTrace) -> Intervals:
    """From the end of a collective to the start of the next, where that is soon and nothing is computed but one short copy."""
    running, computing = trace.activity.communication, trace.activity.compute
    start, end = running.end[:-1], running.start[1:]
    pause = end - start
    num_kernels = np.searchsorted(computing.start, end) - np.searchsorted(computing.end, start, side="right")
    alone = (pause <= ISSUING_NS) & (num_kernels <= 1) & (2 * covered(computing, start, end) < pause)
    return Intervals(start[alone], end[alone])


def gaps_between(work: pl.DataFrame) -> pl.DataFrame:
    """The gaps between device work that comes in order of start: `start_ns, end_ns, previous, next, launch`."""
    start, end = work["start_ns"].to_numpy(), work["end_ns"].to_numpy()
    if not len(start):
        return _no_gaps().drop("device")
    reached = np.maximum.accumulate(end)
    latest = np.maximum.accumulate(np.where(end == reached, np.arange(len(end)), 0))
    at = np.flatnonzero(start[1:] > reached[:-1])
    event = work["event"].cast(pl.Int32)
    return pl.DataFrame(
        {
            "start_ns": reached[at],
            "end_ns": start[at + 1],
            "previous": event.gather(latest[at]),
            "next": event.gather(at + 1),
            "launch": work["parent"].gather(at + 1),
        }
    )


def operator_gaps(trace: RankTrace) -> Intervals:
    """Without device work: when no thread ran a collective, or an operator outside the data loader, within the span."""
    activity = trace.activity
    busy = subtract(merge(activity.host, activity.communication), activity.data)
    return complement(busy, activity.start_ns, activity.end_ns)


def profiler_overhead(trace: RankTrace) -> Intervals:
    """When the profiler held up the program, as its own records say.

    Records of kind `overhead` that are the program's own cost, such as loading a kernel when it is first used, are not
    among them.
    """
    own = trace.of_kind(Kind.OVERHEAD).filter(
        pl.col("name").str.contains(r"(?i)buffer (request|flush)|instrumentation|cupti|roctracer|resource")
    )
    return union(own["start_ns"].to_numpy(), own["end_ns"].to_numpy())


def _touched(start: IntArray, end: IntArray, moments: IntArray) -> npt.NDArray[np.bool_]:
    """Whether each moment lies in one of the closed intervals, which come in order of start."""
    if not len(start):
        return np.zeros(len(moments), dtype=bool)
    last = np.searchsorted(start, moments, side="right") - 1
    return np.asarray((last >= 0) & (np.maximum.accumulate(end)[np.maximum(last, 0)] >= moments), np.bool_)


def _by(work: pl.DataFrame, column: str) -> list[tuple[int, pl.DataFrame]]:
    return [(int(key[0]), part) for key, part in work.partition_by(column, as_dict=True).items()]


def _no_gaps() -> pl.DataFrame:
    return pl.DataFrame(
        schema={
            "start_ns": pl.Int64,
            "end_ns": pl.Int64,
            "previous": pl.Int32,
            "next": pl.Int32,
            "launch": pl.Int32,
            "device": pl.Int32,
        }
    )
