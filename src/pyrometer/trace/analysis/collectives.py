"""Collectives of one rank: sizes, times, bandwidth, and how much of them computing hides."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.jobs.calls import collective_calls, computing
from pyrometer.trace.jobs.semantics import bus_factor
from pyrometer.trace.program.where import where
from pyrometer.trace.records.device import CollectiveGroup, Collectives
from pyrometer.trace.timing.intervals import length, subtract, union
from pyrometer.trace.trace import RankTrace

KEY = ("name", "group", "dtype")


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
