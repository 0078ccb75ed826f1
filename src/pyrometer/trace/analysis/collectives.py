"""Collectives of one rank: sizes, times, bandwidth, and how much of them computing hides."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import polars as pl

from pyrometer.place import Place
from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc
from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.jobs.calls import collective_calls, computing
from pyrometer.trace.jobs.semantics import bus_factor
from pyrometer.trace.program.where import where
from pyrometer.trace.timing.intervals import length, subtract, union
from pyrometer.trace.trace import RankTrace

KEY = ("name", "group", "dtype")


class CollectiveGroup(Record, frozen=True, kw_only=True):
    """The calls of one collective in one process group with one dtype."""

    name: Annotated[str, doc("all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send, recv, …")]
    group: Annotated[str | None, doc("process group; null where the trace does not say")] = None
    group_size: Annotated[int | None, doc("ranks in the group")] = None
    dtype: str | None = None
    num_calls: int
    num_timed: Annotated[int, doc("calls whose run the trace holds; the rest were only seen on the host")]
    bytes: Annotated[
        Bytes | None, doc("messages of all calls, sized as nccl-tests does; null if no size is known")
    ]
    in_bytes: Annotated[Bytes | None, doc("what this rank put in")] = None
    out_bytes: Annotated[Bytes | None, doc("what this rank got")] = None
    total_ns: Annotated[int, doc("sum of the durations, waiting for other ranks included")]
    mean_ns: Annotated[int | None, doc("per timed call")] = None
    median_ns: int | None = None
    min_ns: int | None = None
    max_ns: int | None = None
    exposed_ns: Annotated[int, doc("part of total_ns in which nothing computes on the same device")]
    overlapped_ns: Annotated[int, doc("the rest of total_ns, hidden behind computing")]
    algorithm_bandwidth: Annotated[float | None, doc("bytes per second: messages over durations")] = None
    bus_bandwidth: Annotated[
        float | None,
        doc("bytes per second on the links, by the factors of nccl-tests; compare with the hardware's"),
    ] = None
    best_bus_bandwidth: Annotated[float | None, doc("of the fastest call, which waited least")] = None
    num_async: Annotated[int | None, doc("calls whose caller went on at once; null where not told")] = None
    op: Annotated[str | None, doc("operator of the longest call")] = None
    where: Annotated[Place, doc("place of the longest call in the user's program")] = Place()


class Collectives(Record, frozen=True, kw_only=True):
    """All collectives of one rank.

    Total durations may exceed `communication_ns` where collectives run side by side; `exposed_ns` here counts a moment
    once, in the groups once per call.
    """

    num_calls: int = 0
    communication_ns: Annotated[int, doc("time in which any collective runs")] = 0
    exposed_ns: Annotated[int, doc("part of it in which nothing computes on that device")] = 0
    overlapped_ns: int = 0
    groups: Annotated[list[CollectiveGroup], doc("most exposed first")] = []


@analysis("collectives")
def collectives(trace: RankTrace) -> Collectives:
    """Per collective, group and dtype: calls, bytes, durations, exposed time, bandwidth, and who calls it."""
    calls = collective_calls(trace)
    timed = calls.drop_nulls("dur_ns")
    busy = exposed = 0
    for device in timed["device"].unique().to_list():
        part = timed.filter(pl.col("device").eq_missing(device))
        running = union(part["start_ns"].to_numpy(), part["end_ns"].to_numpy())
        busy += length(running)
        exposed += length(subtract(running, computing(trace, device)))
    groups = [_group(trace, part) for part in calls.partition_by(*KEY, maintain_order=True)]
    return Collectives(
        num_calls=calls.height,
        communication_ns=busy,
        exposed_ns=exposed,
        overlapped_ns=busy - exposed,
        groups=sorted(groups, key=lambda group: (-group.exposed_ns, -group.total_ns, group.name)),
    )


def _group(trace: RankTrace, calls: pl.DataFrame) -> CollectiveGroup:
    timed = calls.drop_nulls("dur_ns")
    total, exposed = int(timed["dur_ns"].sum()), int(timed["exposed_ns"].sum())
    row = calls.row(int(np.argmax(calls["dur_ns"].fill_null(0).to_numpy())), named=True)
    launch = row["launch"]
    size = row["group_size"]
    rate, best = _bandwidth(timed)
    factor = bus_factor(row["name"], size)
    known = calls["is_async"].drop_nulls()
    return CollectiveGroup(
        name=row["name"],
        group=row["group"],
        group_size=size,
        dtype=row["dtype"],
        num_calls=calls.height,
        num_timed=timed.height,
        bytes=_sum(calls["bytes"]),
        in_bytes=_sum(calls["in_bytes"]),
        out_bytes=_sum(calls["out_bytes"]),
        total_ns=total,
        mean_ns=total // timed.height if timed.height else None,
        median_ns=_whole(timed["dur_ns"].median()),
        min_ns=_whole(timed["dur_ns"].min()),
        max_ns=_whole(timed["dur_ns"].max()),
        exposed_ns=exposed,
        overlapped_ns=total - exposed,
        algorithm_bandwidth=rate,
        bus_bandwidth=None if rate is None else rate * factor,
        best_bus_bandwidth=None if best is None else best * factor,
        num_async=int(known.sum()) if len(known) else None,
        op=None if launch is None else trace.events["name"][launch],
        where=where(trace, launch if launch is not None else row["event"]),
    )


def _bandwidth(timed: pl.DataFrame) -> tuple[float | None, float | None]:
    """Bytes per second over all calls whose size is known, and of the fastest."""
    sized = timed.filter((pl.col("bytes") > 0) & (pl.col("dur_ns") > 0))
    if not sized.height:
        return None, None
    moved, taken = sized["bytes"].to_numpy(), sized["dur_ns"].to_numpy()
    return float(moved.sum() / taken.sum() * 1e9), float((moved / taken).max() * 1e9)


def _sum(values: pl.Series) -> int | None:
    return int(values.sum()) if values.null_count() < len(values) else None


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)
