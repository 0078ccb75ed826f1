"""When what was busy: canonical intervals per class of activity, the raw material of breakdown, idle time and overlap."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import polars as pl

from pyrometer.trace.kinds import DEVICE_WORK, Kind, is_kind
from pyrometer.trace.naming.patterns import (
    is_blocking_call,
    is_communication,
    is_data_loading,
    is_host_communication,
    is_step_mark,
)
from pyrometer.trace.timing.intervals import EMPTY, Intervals, Lanes, clip, covered, merge, subtract, union

CALLS = (Kind.RUNTIME, Kind.DRIVER)
USED = ("kind", "name", "track", "start_ns", "end_ns")


@dataclass(frozen=True)
class Activity:
    """The span of one rank's trace, and when each class was active (anywhere: any stream, any thread).

    `span` runs from the first start to the last end over host operators, device work (kernels, memcpy, memset), annotated
    waits for the loader, and steps in which any of these runs: a step counts from its start to its end. Other annotations,
    Python functions, runtime calls and the profiler's own records do not widen it. A trace that has neither operators nor
    device work takes all its host events instead.
    """

    start_ns: int
    end_ns: int
    has_device: bool  # whether there is any device work
    compute: Intervals  # kernels that are not communication
    communication: Intervals  # communication kernels; without device work, what the host runs or waits for
    hiding: Intervals  # what communication can hide behind: compute; without device work, other operators
    memcpy: Intervals
    memset: Intervals
    sync: Intervals  # host calls that wait for a device
    runtime: Intervals  # all other runtime and driver calls
    data: Intervals  # some thread waits for the data loader, and none works outside of it
    host: Intervals  # operators
    other: Intervals  # Python functions, on threads that also run operators or runtime calls

    @property
    def span_ns(self) -> int:
        """Length of the span."""
        return self.end_ns - self.start_ns

    @property
    def device(self) -> Intervals:
        """When any device was busy."""
        if not self.has_device:
            return EMPTY
        return merge(self.compute, self.communication, self.memcpy, self.memset)

    def within(self, low: int, high: int) -> Activity:
        """The part of the span between two moments."""
        low = min(max(low, self.start_ns), self.end_ns)
        high = min(max(high, low), self.end_ns)
        classes: dict[str, Any] = {
            entry.name: clip(getattr(self, entry.name), low, high)
            for entry in fields(self)
            if isinstance(getattr(self, entry.name), Intervals)
        }
        return replace(self, start_ns=low, end_ns=high, **classes)


def find_activity(events: pl.DataFrame, steps: pl.DataFrame) -> Activity:
    """Collect the activity of one rank, whose steps are known.

    Old files write annotations as operators; of these the marks of steps are known by their name and left out.
    """
    events = events.select(USED).filter((pl.col("kind") != Kind.CPU_OP.value) | ~is_step_mark())
    has_device = _only(events, *DEVICE_WORK).height > 0
    kernels = _split(_only(events, Kind.KERNEL), is_communication())
    calls = _split(_only(events, *CALLS), is_blocking_call())
    ops = _only(events, Kind.CPU_OP)
    waiting = _only(events, Kind.CPU_OP, Kind.USER_ANNOTATION).filter(is_host_communication())
    marks = _only(events, Kind.USER_ANNOTATION, Kind.CPU_OP, Kind.PYTHON_FUNCTION).filter(is_data_loading())
    low, high = _span(events, steps)
    return Activity(
        start_ns=low,
        end_ns=high,
        has_device=has_device,
        compute=_union(kernels[1]),
        communication=_union(kernels[0] if has_device else waiting),
        hiding=_union(kernels[1]) if has_device else _elsewhere(ops, waiting),
        memcpy=_union(_only(events, Kind.MEMCPY)),
        memset=_union(_only(events, Kind.MEMSET)),
        sync=_union(calls[0]),
        runtime=_union(calls[1]),
        data=subtract(_union(marks), _elsewhere(_only(events, Kind.CPU_OP, *CALLS), marks)),
        host=_union(ops),
        other=_union(_on_working_threads(events)),
    )


def _span(events: pl.DataFrame, steps: pl.DataFrame) -> tuple[int, int]:
    work = _only(events, Kind.CPU_OP, *DEVICE_WORK)
    if not work.height:
        return _hull(_only(events, *CALLS, Kind.PYTHON_FUNCTION, Kind.USER_ANNOTATION)) or (0, 0)
    work = pl.concat([work, _only(events, Kind.USER_ANNOTATION).filter(is_data_loading())])
    bounds = steps.select("start_ns", "end_ns")
    # A step in which nothing runs tells nothing: it would only add to what was not recorded.
    runs = covered(_union(work), bounds["start_ns"].to_numpy(), bounds["end_ns"].to_numpy()) > 0
    return _hull(pl.concat([work.select("start_ns", "end_ns"), bounds.filter(pl.Series(runs))])) or (0, 0)


def _hull(events: pl.DataFrame) -> tuple[int, int] | None:
    low, high = events["start_ns"].min(), events["end_ns"].max()
    return (low, high) if isinstance(low, int) and isinstance(high, int) else None


def _elsewhere(work: pl.DataFrame, marks: pl.DataFrame) -> Intervals:
    """When some thread works outside the marks that lie on that thread."""
    if not marks.height or not work.height:
        return _union(work)
    every = pl.concat([work, marks])
    lanes = Lanes(every["start_ns"].min(), every["end_ns"].max())  # type: ignore[arg-type]
    return lanes.flatten(subtract(_union(work, lanes), _union(marks, lanes)))


def _on_working_threads(events: pl.DataFrame) -> pl.DataFrame:
    functions = _only(events, Kind.PYTHON_FUNCTION)
    working = _only(events, Kind.CPU_OP, *CALLS)["track"].unique()
    return functions.filter(pl.col("track").is_in(working.implode())) if len(working) else functions


def _only(events: pl.DataFrame, *kinds: Kind) -> pl.DataFrame:
    return events.filter(is_kind(*kinds))


def _split(events: pl.DataFrame, chosen: pl.Expr) -> tuple[pl.DataFrame, pl.DataFrame]:
    is_chosen = events.select(chosen.fill_null(value=False)).to_series()
    return events.filter(is_chosen), events.filter(~is_chosen)


def _union(events: pl.DataFrame, lanes: Lanes | None = None) -> Intervals:
    start, end = events["start_ns"].to_numpy(), events["end_ns"].to_numpy().astype(np.int64)
    return union(start, end) if lanes is None else lanes.union(events["track"].to_numpy(), start, end)
