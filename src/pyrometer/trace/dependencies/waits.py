"""Host calls that wait for device work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.dependencies.work import CALLS, NEVER, Streams, Work
from pyrometer.trace.naming.patterns import is_blocking_call
from pyrometer.trace.rows import IntArray

Chosen = npt.NDArray[np.bool_]

ALL_STREAMS = r"(Device|Ctx)Synchronize"
ONE_STREAM = r"StreamSynchronize"
PAGEABLE = r"(?i)pageable"
QUEUE_FULL = 1000
"""A stream takes about this many launches before the next one waits; CUDA's limit is 1024."""
LONG_LAUNCH = 20
"""A launch into a full queue takes at least this many times the usual."""


@dataclass(frozen=True)
class Waits:
    """Waiting calls, and the work that each waits for."""

    event: IntArray  # the calls, rows of `events`, in order of start
    of: IntArray  # one entry per dependency: index in `event`
    work: IntArray  # and the work that must have ended, index in `Work`
    num_inferred: int  # calls whose work was inferred and not told by a synchronisation record


def host_waits(events: pl.DataFrame, syncs: pl.DataFrame, work: Work) -> Waits:
    """Find the calls that wait, and what for.

    A synchronisation record says it. Where there is none, it follows from the call: a device waits for all its
    streams; a stream is the one that the thread launched to last; a copy to or from pageable memory waits for
    itself; any other blocking call, and a launch into a full queue, waits for the work that ended last while it
    ran, if there is any. Work that ended after the call is never what it waited for.

    Args:
        events: linked events.
        syncs: the table `syncs` joined to its events.
        work: the device work.
    """
    calls = _waiting_calls(events, work)
    if not len(work) or not calls.height:
        none = np.empty(0, np.int64)
        return Waits(none, none, none, 0)
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    streams = Streams(work)
    last = np.stack([streams.last(i, start, end) for i in range(len(streams.slices))], axis=1)
    chosen = np.zeros(last.shape, bool)
    told = _tell(calls, syncs, streams, chosen, last)
    untold = ~told & ~calls["launching"].to_numpy()
    chosen[untold & calls["all_streams"].to_numpy()] = True
    mine = _thread_stream(calls, work, streams)
    one = np.flatnonzero(untold & calls["one_stream"].to_numpy() & (mine >= 0))
    chosen[one, mine[one]] = True
    chosen &= last >= 0
    copy_of, copy = _own_copies(events, calls, work)
    rest = ~told & ~chosen.any(axis=1)
    rest[copy_of] = False
    _choose_latest(rest, chosen, np.where(last >= 0, work.end[last], NEVER), start)
    of, stream = np.nonzero(chosen)
    return Waits(
        calls["event"].to_numpy().astype(np.int64),
        np.concatenate([of, copy_of]),
        np.concatenate([last[of, stream], copy]),
        int((~told & chosen.any(axis=1)).sum()),
    )


def _waiting_calls(events: pl.DataFrame, work: Work) -> pl.DataFrame:
    columns = events.select("event", "kind", "name", "track", "start_ns", "end_ns", "dur_ns")
    calls = columns.filter(pl.col("kind").is_in(CALLS) & pl.col("track").is_not_null())
    rows = calls["event"].to_numpy()
    launching, copying = np.zeros(events.height, bool), np.zeros(events.height, bool)
    launching[work.call[work.call >= 0]] = True
    copying[work.call[(work.call >= 0) & work.is_copy]] = True
    usual = pl.col("dur_ns").filter(pl.col("launching")).median().fill_null(0)
    return (
        calls.with_columns(
            launching=pl.Series(launching[rows], dtype=pl.Boolean),
            copying=pl.Series(copying[rows], dtype=pl.Boolean),
            full=pl.Series(_queued(calls, work) >= QUEUE_FULL, dtype=pl.Boolean),
        )
        .with_columns(slow=pl.col("launching") & (pl.col("dur_ns") > LONG_LAUNCH * usual))
        .filter(
            (is_blocking_call() & ~pl.col("launching"))
            | pl.col("copying")
            | (pl.col("slow") & pl.col("full"))
        )
        .select(
            "event",
            "track",
            "start_ns",
            "end_ns",
            "launching",
            full=pl.col("slow") & pl.col("full"),
            blocking=is_blocking_call(),
            all_streams=pl.col("name").str.contains(ALL_STREAMS),
            one_stream=pl.col("name").str.contains(ONE_STREAM),
        )
    )


def _queued(calls: pl.DataFrame, work: Work) -> IntArray:
    """How much work is launched and not yet begun when each call begins."""
    at = calls["start_ns"].to_numpy()
    launched = np.searchsorted(np.sort(work.launched), at)
    return np.asarray(launched - np.searchsorted(np.sort(work.start), at), np.int64)


def _tell(
    calls: pl.DataFrame, syncs: pl.DataFrame, streams: Streams, chosen: Chosen, last: IntArray
) -> Chosen:
    """Choose what the synchronisation records say; gives the calls that have one."""
    told = np.zeros(calls.height, bool)
    place = dict(zip(calls["event"].to_list(), range(calls.height), strict=True))
    for row in syncs.iter_rows(named=True):
        i, kind = place.get(row["parent"]), row["sync_kind"] or ""
        if i is None or kind.startswith("Stream Wait"):
            continue
        told[i] = True
        if kind.startswith("Stream"):
            chosen[i, streams.named(row["stream"], row["device"])] = True
        elif not kind.startswith("Event"):
            chosen[i] = True
        elif row["recorded_ns"] is not None:
            until = np.array([calls["end_ns"][i]])
            for which in streams.named(row["wait_stream"], row["device"]):
                chosen[i, which] = True
                last[i, which] = streams.last(which, np.array([row["recorded_ns"]]), until)[0]
    return told


def _thread_stream(calls: pl.DataFrame, work: Work, streams: Streams) -> IntArray:
    """Which stream the thread of each call launched to last; -1 if none."""
    known = work.call >= 0
    launches = pl.DataFrame(
        {"track": work.thread[known], "start_ns": work.launched[known], "stream": streams.of_work[known]},
        schema={"track": pl.Int32, "start_ns": pl.Int64, "stream": pl.Int64},
    ).sort("start_ns")
    return (
        calls.select("track", "start_ns")
        .join_asof(launches, on="start_ns", by="track", strategy="backward", check_sortedness=False)["stream"]
        .fill_null(-1)
        .to_numpy()
    )


def _own_copies(events: pl.DataFrame, calls: pl.DataFrame, work: Work) -> tuple[IntArray, IntArray]:
    """Copies that their own call waits for: to or from pageable memory, or by a blocking call; as (call, work)."""
    copies = np.flatnonzero(work.is_copy & (work.call >= 0))
    place = np.full(events.height, -1, np.int64)
    place[calls["event"].to_numpy()] = np.arange(calls.height)
    call = place[work.call[copies]]
    copies, call = copies[call >= 0], call[call >= 0]
    pageable = (
        events["name"].gather(work.event[copies]).str.contains(PAGEABLE).fill_null(value=False).to_numpy()
    )
    inside = work.end[copies] <= calls["end_ns"].to_numpy()[call]
    waited = inside & (pageable | calls["blocking"].to_numpy()[call])
    return call[waited], copies[waited]


def _choose_latest(rows: Chosen, chosen: Chosen, ends: IntArray, start: IntArray) -> None:
    """Where nothing else is known: the work that ended last, if it ended while the call ran."""
    which = ends.argmax(axis=1)
    found = np.flatnonzero(rows & (ends[np.arange(len(ends)), which] > start))
    chosen[found, which[found]] = True
