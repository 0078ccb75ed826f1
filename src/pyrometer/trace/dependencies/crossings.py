"""Work that waits for work of another stream: event waits, and the branches of a graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from pyrometer.trace.dependencies.latencies import Latencies
from pyrometer.trace.dependencies.work import CALLS, NEVER, Streams, Work
from pyrometer.trace.rows import IntArray, each_once

STREAM_WAIT = r"StreamWaitEvent"
USUAL_SIGNAL_NS = 5_000
"""Until a stream goes on that waited for another: longer than until the next in its own queue begins."""


@dataclass(frozen=True)
class Crossings:
    """Pairs of work (indices in `Work`): the first must end before the second begins."""

    awaited: IntArray
    work: IntArray
    num_told: int  # event waits that a synchronisation record describes
    num_inferred: int  # event waits whose event had to be guessed


def crossings(events: pl.DataFrame, syncs: pl.DataFrame, work: Work, usual: Latencies) -> Crossings:
    """Find what waits for other streams.

    With synchronisation records (`Stream Wait Event`) the awaited work is the last that its stream was given before
    the event was recorded, and the waiting work the next that the waiting stream was given after the call. Without
    them the work that the same thread launches next waits for whatever other streams of its device had been given
    before the call, unless that ended too late to have been awaited: which event was meant is not recorded, so this
    may claim too much. Nor need the call be there: work that was launched long before onto an empty stream, and
    begins just after work of another stream of its device has ended, waited for that. Work of one graph launch on
    several streams waits for what ended last before it in the same launch.

    Args:
        events: linked events.
        syncs: the table `syncs` joined to its events.
        work: the device work.
        usual: delays of the trace.
    """
    streams = Streams(work)
    waiting = pl.col("sync_kind").str.starts_with("Stream Wait").fill_null(value=False)
    rows = syncs.filter(waiting & pl.col("recorded_ns").is_not_null())
    if rows.height:
        pairs = _told(rows, streams)
    else:
        pairs = np.concatenate([_inferred(events, streams), _just_after(streams, usual)], axis=1)
    graph = _within_graphs(work)
    before, after = np.concatenate([pairs, graph], axis=1)
    fits = (before >= 0) & (after >= 0)
    before, after = before[fits], after[fits]
    fits = (work.end[before] <= work.start[after]) & (work.lane[before] != work.lane[after])
    # Work without a duration must not wait for each other.
    fits &= (work.start[before] < work.start[after]) | (before < after)
    width = max(len(work), 1)
    found = each_once(before[fits] * width + after[fits])
    inferred = 0 if rows.height else len(each_once(pairs[1]))
    return Crossings(found // width, found % width, rows.height, inferred)


def _told(rows: pl.DataFrame, streams: Streams) -> IntArray:
    found: list[tuple[int, int]] = []
    late = np.array([np.iinfo(np.int64).max])
    for row in rows.iter_rows(named=True):
        at, recorded = row["called_ns"] or row["start_ns"], np.array([row["recorded_ns"]])
        for theirs in streams.named(row["wait_stream"], row["device"]):
            before = int(streams.last(theirs, recorded, late)[0])
            found.extend(
                (before, streams.next(mine, at)) for mine in streams.named(row["stream"], row["device"])
            )
    return np.asarray(np.array(found, np.int64).reshape(-1, 2).T)


def _inferred(events: pl.DataFrame, streams: Streams) -> IntArray:
    work = streams.work
    calls = (
        events.select("kind", "name", "track", "start_ns")
        .filter(pl.col("kind").is_in(CALLS) & pl.col("track").is_not_null())
        .filter(pl.col("name").str.contains(STREAM_WAIT))
        .select("track", "start_ns")
    )
    known = np.flatnonzero(work.call >= 0)
    if not calls.height or not len(known) or len(streams.slices) < 2:
        return np.empty((2, 0), np.int64)
    launches = pl.DataFrame(
        {"track": work.thread[known], "start_ns": work.launched[known], "work": known},
        schema={"track": pl.Int32, "start_ns": pl.Int64, "work": pl.Int64},
    ).sort("start_ns")
    waiting = calls.with_columns(at=pl.col("start_ns")).join_asof(
        launches, on="start_ns", by="track", strategy="forward", check_sortedness=False
    )
    waiting = waiting.drop_nulls("work").unique("work", keep="last", maintain_order=True)
    after, at = waiting["work"].to_numpy(), waiting["at"].to_numpy()
    pairs = []
    for which, (low, _) in enumerate(streams.slices):
        before = streams.last(which, at, work.start[after])
        same = (work.device[after] == work.device[low]) & (streams.of_work[after] != which)
        pairs.append(np.stack([np.where(same, before, -1), after]))
    return np.concatenate(pairs, axis=1)


def _just_after(streams: Streams, usual: Latencies) -> IntArray:
    work = streams.work
    free = np.where(work.before >= 0, work.end[work.before], NEVER) if len(work) else work.end
    late = (work.call >= 0) & (work.launched + work.in_call + usual.launch.high < work.start)
    late &= np.where(free > NEVER, free + usual.queue.high < work.start, True)
    pairs = [np.empty((2, 0), np.int64)]
    for device in each_once(work.device[late]).tolist():
        theirs = np.flatnonzero(work.device == device)
        by_end = theirs[np.argsort(work.end[theirs], kind="stable")]
        after = np.flatnonzero(late & (work.device == device))
        at = np.searchsorted(work.end[by_end], work.start[after], side="right") - 1
        before = by_end[np.maximum(at, 0)]
        soon = max(usual.queue.high, USUAL_SIGNAL_NS)
        fits = (at >= 0) & (work.start[after] - work.end[before] <= soon)
        pairs.append(np.stack([before[fits], after[fits]]))
    return np.concatenate(pairs, axis=1)


def _within_graphs(work: Work) -> IntArray:
    """What ended last before each piece of work of a call that launched work on several streams."""
    known = np.flatnonzero(work.call >= 0)
    frame = pl.DataFrame({"work": known, "call": work.call[known], "lane": work.lane[known]})
    several = frame.filter(pl.col("lane").n_unique().over("call") > 1)
    pairs = [np.empty((2, 0), np.int64)]
    for part in several.partition_by("call"):
        mine = part["work"].to_numpy()
        by_end = mine[np.argsort(work.end[mine], kind="stable")]
        ended = np.searchsorted(work.end[by_end], work.start[mine], side="right") - 1
        pairs.append(np.stack([np.where(ended >= 0, by_end[ended], -1), mine]))
    return np.concatenate(pairs, axis=1)
