"""When what was busy: canonical intervals per class of activity, the raw material of breakdown, idle time and overlap."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from pyrometer.trace.kinds import CALLS, DEVICE_WORK, Kind, is_kind
from pyrometer.trace.naming.patterns import (
    is_blocking_call,
    is_communication,
    is_data_loading,
    is_host_communication,
    is_step_mark,
)
from pyrometer.trace.rows import IntArray
from pyrometer.trace.sorts import Sorts
from pyrometer.trace.timing.intervals import (
    EMPTY,
    Intervals,
    Lanes,
    Nanoseconds,
    clip,
    covered,
    merge,
    subtract,
    union,
)

_NEVER = np.iinfo(np.int64).max


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


@dataclass(frozen=True)
class _Timed:
    """Events that count, by rows."""

    start: Nanoseconds
    end: Nanoseconds
    track: npt.NDArray[Any]
    sorts: Sorts

    @classmethod
    def of(cls, events: pl.DataFrame, sorts: Sorts) -> _Timed:
        start, end, track = (events[name].to_numpy() for name in ("start_ns", "end_ns", "track"))
        return cls(start, end, track, sorts)

    def rows(self, wanted: pl.Expr) -> IntArray:
        """Old files write annotations as operators; of these the marks of steps are known by their name and left out."""
        return np.flatnonzero(
            self.sorts.mask(wanted & ((pl.col("kind") != Kind.CPU_OP.value) | ~is_step_mark()))
        )

    def union(self, rows: IntArray) -> Intervals:
        return union(self.start[rows], self.end[rows])

    def hull(self, rows: IntArray) -> tuple[int, int] | None:
        return (int(self.start[rows].min()), int(self.end[rows].max())) if len(rows) else None

    def elsewhere(self, work: IntArray, marks: IntArray) -> Intervals:
        """When some thread works outside the marks that lie on that thread."""
        if not len(marks) or not len(work):
            return self.union(work)
        every = np.append(work, marks)
        lanes = Lanes(int(self.start[every].min()), int(self.end[every].max()))
        working, marked = (
            lanes.union(self.track[rows], self.start[rows], self.end[rows]) for rows in (work, marks)
        )
        return lanes.flatten(subtract(working, marked))

    def on_working_threads(self) -> IntArray:
        functions = self.rows(is_kind(Kind.PYTHON_FUNCTION))
        working = self.track[self.rows(is_kind(Kind.CPU_OP, *CALLS))]
        return functions[np.isin(self.track[functions], working)] if len(working) else functions


def find_span(events: pl.DataFrame, steps: pl.DataFrame, sorts: Sorts) -> tuple[int, int]:
    """The span of one rank, whose steps are known; see `Activity`."""
    timed = _Timed.of(events, sorts)
    work = timed.rows(is_kind(Kind.CPU_OP, *DEVICE_WORK))
    if not len(work):
        return timed.hull(timed.rows(is_kind(*CALLS, Kind.PYTHON_FUNCTION, Kind.USER_ANNOTATION))) or (0, 0)
    work = np.append(work, timed.rows(is_kind(Kind.USER_ANNOTATION) & is_data_loading()))
    low, high = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    # A step in which nothing runs tells nothing: it would only add to what was not recorded.
    runs = covered(timed.union(work), low, high) > 0
    return (
        int(timed.start[work].min(initial=low[runs].min(initial=_NEVER))),
        int(timed.end[work].max(initial=high[runs].max(initial=-_NEVER))),
    )


def find_activity(events: pl.DataFrame, span: tuple[int, int], sorts: Sorts) -> Activity:
    """Collect the activity of one rank, whose span is known."""
    timed = _Timed.of(events, sorts)
    has_device = len(timed.rows(is_kind(*DEVICE_WORK))) > 0
    ops = timed.rows(is_kind(Kind.CPU_OP))
    waiting = timed.rows(is_kind(Kind.CPU_OP, Kind.USER_ANNOTATION) & is_host_communication())
    marks = timed.rows(is_data_loading())
    communicates = is_communication().fill_null(value=False)
    blocks = is_blocking_call().fill_null(value=False)

    def of(wanted: pl.Expr) -> Intervals:
        return timed.union(timed.rows(wanted))

    compute = of(is_kind(Kind.KERNEL) & ~communicates)
    return Activity(
        start_ns=span[0],
        end_ns=span[1],
        has_device=has_device,
        compute=compute,
        communication=of(is_kind(Kind.KERNEL) & communicates) if has_device else timed.union(waiting),
        hiding=compute if has_device else timed.elsewhere(ops, waiting),
        memcpy=of(is_kind(Kind.MEMCPY)),
        memset=of(is_kind(Kind.MEMSET)),
        sync=of(is_kind(*CALLS) & blocks),
        runtime=of(is_kind(*CALLS) & ~blocks),
        data=subtract(timed.union(marks), timed.elsewhere(timed.rows(is_kind(Kind.CPU_OP, *CALLS)), marks)),
        host=timed.union(ops),
        other=timed.union(timed.on_working_threads()),
    )
