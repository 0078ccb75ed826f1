"""Series beside the events: queues, memory, copy bandwidth and whether a device is busy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.copy_names import copy_direction
from pyrometer.trace.timing.intervals import union
from pyrometer.trace.timing.queues import queue_depth
from pyrometer.trace.trace import RankTrace


class Series(NamedTuple):
    """A step function: the value holds from its moment to the next."""

    name: str
    unit: str
    at_ns: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]


def counter_series(trace: RankTrace) -> Iterator[Series]:
    """All series that the trace gives."""
    yield from _queues(trace)
    yield from _busy(trace)
    yield from _bandwidth(trace)
    yield from _memory(trace)


def _queues(trace: RankTrace) -> Iterator[Series]:
    """Per stream the work that is launched and has not begun."""
    for (device, stream), rows in queue_depth(trace).group_by("device", "stream", maintain_order=True):
        at, depth = rows["ts_ns"].to_numpy(), rows["depth"].to_numpy().astype(np.float64)
        yield Series(f"queue of stream {stream} on device {device}", "launched", at, depth)


def _busy(trace: RankTrace) -> Iterator[Series]:
    work = trace.device_work
    for (device,), rows in work.group_by("device", maintain_order=True):
        when = union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())
        at = np.concatenate([when.start, when.end])
        yield _summed(f"device {device} busy", "busy", at, np.repeat([1, -1], len(when.start)))


def _bandwidth(trace: RankTrace) -> Iterator[Series]:
    """Bytes per second of the copies that run; what overlaps adds up."""
    copies = trace.detail("copies").filter(
        (pl.col("kind") == Kind.MEMCPY.value) & (pl.col("dur_ns") > 0) & (pl.col("bytes") > 0)
    )
    for (way,), rows in copies.group_by(copy_direction().fill_null("copy"), maintain_order=True):
        rate = (rows["bytes"] / rows["dur_ns"]).to_numpy()  # bytes per ns are GB/s
        at = np.concatenate([rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()])
        yield _summed(f"{way} bandwidth", "GB/s", at, np.concatenate([rate, -rate]))


def _memory(trace: RankTrace) -> Iterator[Series]:
    allocations = trace.detail("memory").rename({"device": "track_device"})
    for (kind, device), rows in allocations.group_by("device_type", "device_id", maintain_order=True):
        where = "CPU" if kind == 0 else f"device {device}"
        for column, what in (("total_allocated_bytes", "allocated"), ("total_reserved_bytes", "reserved")):
            known = rows.drop_nulls(column)
            if known.height:
                yield Series(
                    f"memory {what} on {where}",
                    "bytes",
                    known["start_ns"].to_numpy(),
                    known[column].to_numpy().astype(np.float64),
                )


def _summed(name: str, unit: str, at: npt.NDArray[np.int64], change: npt.NDArray[np.generic]) -> Series:
    order = np.argsort(at, kind="stable")
    moments, first = np.unique(at[order], return_index=True)
    sums = np.add.reduceat(change[order].astype(np.float64), first).cumsum() if len(at) else np.zeros(0)
    return Series(name, unit, moments, np.round(sums, 9))
