"""What a rank did between one collective and the next: the reason why it comes late to the next."""

from __future__ import annotations

import numpy as np
import polars as pl

from pyrometer.trace.kinds import HOST, Kind, is_kind
from pyrometer.trace.naming.patterns import is_blocking_call, is_communication, is_step_mark
from pyrometer.trace.program.where import marked_phases, names_of_places
from pyrometer.trace.rows import row_numbers
from pyrometer.trace.timing.intervals import Intervals, covered, merge, union
from pyrometer.trace.trace import RankTrace

LARGEST = 5
"""Kinds of work that are kept per collective and side."""

BETWEEN = "between operators"
"""Time of a host in which nothing runs that the trace knows: Python, or waiting for something outside."""

WAITING = r"torch/distributed/|_distributed_c10d|built-in method wait|^record_param_comms$|^(nccl|gloo|rccl|ucc|mpi):|wait_tensor"
"""Host events in which a rank waits for another: never a reason for being late."""

KIND = {
    **dict.fromkeys(("side", "name", "phase", "file"), pl.String),
    "line": pl.Int64,
    "function": pl.String,
}
"""What tells one kind of work from others: the place is the user's function that it belongs to, where the trace knows it."""

WORK = {"call": pl.Int64, **KIND, "ns": pl.Int64}


def work_before(trace: RankTrace, calls: pl.DataFrame) -> pl.DataFrame:
    """The largest kinds of work before each call: the columns of `WORK`.

    On the device, work that begins after the previous collective has begun and before this one does, under the
    operator that launched it. On the host, the own time of events that begin and end between two launches, of
    whichever thread that is at work, and what neither an event covers nor a collective that runs on the host.

    Args:
        trace: the rank's trace.
        calls: `collective_calls`, in order; `call` is a row of it.
    """
    calls = calls.with_row_index("call")
    tables = [pl.DataFrame(schema={**WORK, "frame": pl.Int32}).drop("file", "line", "function")]
    timed = calls.filter(pl.col("device").is_not_null()).drop_nulls("start_ns").sort("start_ns")
    if timed.height:
        tables.append(_on_device(trace, timed))
    launched = calls.with_columns(at=pl.coalesce("launch_ns", "start_ns")).drop_nulls("at")
    launched = launched.unique("at", keep="first").sort("at")
    if launched.height:
        on_host = calls.filter(pl.col("device").is_null()).drop_nulls("start_ns")
        tables.append(
            _on_host(trace, launched, union(on_host["start_ns"].to_numpy(), on_host["end_ns"].to_numpy()))
        )
    whole = pl.concat(tables, how="diagonal_relaxed")
    largest = (
        whole.filter(pl.col("ns") > 0)
        .sort("call", "side", "ns", "name", "phase", "frame", descending=[False, False, True] + [False] * 3)
        .group_by("call", "side", maintain_order=True)
        .head(LARGEST)
    )
    frames = names_of_places(trace).frames.with_columns(frame=pl.int_range(pl.len(), dtype=pl.Int32))
    placed = largest.join(frames, on="frame", how="left", maintain_order="left")
    return placed.select(pl.col(name).cast(dtype) for name, dtype in WORK.items())


def _on_device(trace: RankTrace, timed: pl.DataFrame) -> pl.DataFrame:
    work = trace.chosen(trace.device_work, ~is_communication())
    place = np.searchsorted(timed["start_ns"].to_numpy(), work["start_ns"].to_numpy(), side="right")
    ops = trace.events["name"].gather(work["op"].cast(pl.UInt32))
    phases = marked_phases(trace).of(row_numbers(work.select(pl.coalesce("parent", "op")).to_series()))
    rows = work.select(
        name=pl.Series(ops).zip_with(ops.is_not_null(), work["name"]),
        phase=phases,
        frame=pl.lit(None, pl.Int32),
        ns="dur_ns",
        place=pl.Series(place.astype(np.int64)),
    )
    return _sum(rows, timed, "device")


def _on_host(trace: RankTrace, launched: pl.DataFrame, runs: Intervals) -> pl.DataFrame:
    marks = (pl.col("kind") == Kind.USER_ANNOTATION.value) & is_step_mark()
    at_work = pl.col("track").is_in(_at_work(trace, launched).implode())
    host = trace.named(is_kind(*HOST) & ~marks).filter(at_work)
    at = launched["at"].to_numpy()
    place = np.searchsorted(at, host["start_ns"].to_numpy(), side="right")
    inside = (place < len(at)) & (host["end_ns"].to_numpy() <= at[np.minimum(place, len(at) - 1)])
    host = host.with_columns(place=pl.Series(place.astype(np.int64))).filter(pl.Series(inside))
    busy = merge(union(host["start_ns"].to_numpy(), host["end_ns"].to_numpy()), runs)
    low = np.concatenate([[trace.activity.start_ns], at[:-1]]).astype(np.int64)
    bare = np.maximum(at - low, 0) - covered(busy, low, np.maximum(at, low))
    waits = pl.col("name").str.contains(WAITING) | is_communication() | is_blocking_call()
    own, phases = trace.chosen(host, ~waits), marked_phases(trace)
    events = row_numbers(own["event"])
    rows = own.select(
        "name",
        phase=phases.of(events),
        frame=pl.Series(names_of_places(trace).frame[events]),
        ns="self_ns",
        place="place",
    )
    rest = pl.DataFrame({"place": np.arange(len(at), dtype=np.int64), "ns": bare}).select(
        name=pl.lit(BETWEEN),
        phase=phases.of(row_numbers(launched["launch"])),
        frame=pl.lit(None, pl.Int32),
        ns="ns",
        place="place",
    )
    return _sum(pl.concat([rows, rest], how="vertical_relaxed"), launched, "host")


def _at_work(trace: RankTrace, launched: pl.DataFrame) -> pl.Series:
    """Threads that run operators or launch collectives; what others do, such as sleep until they are asked, delays nothing."""
    launching = trace.events["track"].gather(launched["launch"].drop_nulls().cast(pl.UInt32))
    return pl.concat([trace.of_kind(Kind.CPU_OP)["track"], launching]).unique()


def _sum(rows: pl.DataFrame, calls: pl.DataFrame, side: str) -> pl.DataFrame:
    """Sum by place, which is a row of `calls`; what comes after the last call belongs to none."""
    known = rows.filter(pl.col("place") < calls.height)
    summed = known.group_by("place", "name", "phase", "frame").agg(pl.col("ns").sum())
    owner = calls["call"].gather(summed["place"])
    return summed.with_columns(call=owner, side=pl.lit(side))
