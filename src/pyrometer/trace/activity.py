"""When what was busy: canonical intervals per class of activity, the raw material of breakdown, idle time and overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from pyrometer.trace.intervals import Intervals, merge, union
from pyrometer.trace.kinds import DEVICE_WORK, Kind
from pyrometer.trace.patterns import is_blocking_call, is_communication, is_data_loading


@dataclass(frozen=True)
class Activity:
    """The span of one rank's trace, and when each class was active (anywhere: any stream, any thread).

    `span` runs from the first start to the last end over host operators (`cpu_op`) and device work (kernels, memcpy,
    memset); annotations and the profiler's own records do not widen it. A trace that has neither takes all its host
    events instead.
    """

    start_ns: int
    end_ns: int
    compute: Intervals  # kernels that are not communication
    communication: Intervals  # communication kernels; on a trace without device work, communication operators
    memcpy: Intervals
    memset: Intervals
    sync: Intervals  # host calls that wait for a device
    runtime: Intervals  # all other runtime and driver calls
    data: Intervals  # waiting for the data loader
    host: Intervals  # operators
    other: Intervals  # Python functions and annotations

    @property
    def span_ns(self) -> int:
        """Length of the span."""
        return self.end_ns - self.start_ns

    @property
    def device(self) -> Intervals:
        """When any device was busy."""
        return merge(self.compute, self.communication, self.memcpy, self.memset)


def find_activity(events: pl.DataFrame) -> Activity:
    """Collect the activity of one rank."""
    has_device = _only(events, *DEVICE_WORK).height > 0
    kernels = _only(events, Kind.KERNEL)
    calls = _only(events, Kind.RUNTIME, Kind.DRIVER)
    ops = _only(events, Kind.CPU_OP)
    communication = (kernels if has_device else ops).filter(is_communication())
    marks = events.filter(is_data_loading())
    rest = _only(events, Kind.PYTHON_FUNCTION, Kind.USER_ANNOTATION)
    bounds = _only(events, Kind.CPU_OP, *DEVICE_WORK)
    if not bounds.height:
        bounds = _only(
            events, Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER, Kind.PYTHON_FUNCTION, Kind.USER_ANNOTATION
        )
    low, high = bounds["start_ns"].min(), bounds["end_ns"].max()
    return Activity(
        start_ns=int(low) if isinstance(low, int) else 0,
        end_ns=int(high) if isinstance(high, int) else 0,
        compute=_union(kernels.filter(~is_communication())),
        communication=_union(communication),
        memcpy=_union(_only(events, Kind.MEMCPY)),
        memset=_union(_only(events, Kind.MEMSET)),
        sync=_union(calls.filter(is_blocking_call())),
        runtime=_union(calls.filter(~is_blocking_call())),
        data=_union(marks),
        host=_union(ops),
        other=_union(rest),
    )


def _only(events: pl.DataFrame, *kinds: Kind) -> pl.DataFrame:
    return events.filter(pl.col("kind").is_in([kind.value for kind in kinds]))


def _union(events: pl.DataFrame) -> Intervals:
    return union(events["start_ns"].to_numpy(), events["end_ns"].to_numpy().astype(np.int64))
