"""Where the time of a trace went: parts that sum to wall time, to the nanosecond.

Each nanosecond belongs to one part: to the first in this order that was active at that moment.

1. `compute`: a kernel that is not communication;
2. `exposed_comm`: communication that nothing hid. On a device a communication kernel without a compute kernel; in a
   trace without device work a collective that the host runs (gloo and its kin) while no operator runs that is not
   itself waiting for it. `c10d::` operators only enqueue and are `host`;
3. `exposed_memcpy`, 4. `memset`: a copy or fill with no kernel beside it;

what follows happened while the devices were idle, and says what the host did:

5. `sync`: some thread was in a call that waits for a device;
6. `data`: some thread waited for the data loader, and no thread worked outside of it. Operators that a loader runs in
   the main process are loading, so `data` comes before `runtime` and `host`; loading in the background, beside
   operators of another thread, costs nothing, so that it is not `data`;
7. `runtime`: any other runtime or driver call; 8. `host`: an operator;
9. `other`: a Python function, with no operator below it, on a thread that also runs operators or runtime calls.
   Annotations, such as `ProfilerStep#3`, say that something is being done but not that anything runs, and count nowhere;
10. `idle`: nothing was recorded.

In a trace without device work the parts on devices are 0 and `host` is the work.
Steps are windows of time, each until the host has left it and the device has done what it was given, after the step before:
a host that runs ahead makes no step shorter. All that runs in a window counts in it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from pyrometer.trace.analysis.registry import analysis
from pyrometer.trace.kinds import Kind
from pyrometer.trace.naming.patterns import is_communication
from pyrometer.trace.records.breakdown import Breakdown, Parts, StepBreakdown, StreamBreakdown
from pyrometer.trace.rows import IntArray
from pyrometer.trace.timing.activity import Activity
from pyrometer.trace.timing.intervals import (
    EMPTY,
    Intervals,
    Lanes,
    covered,
    intersect,
    length,
    merge,
    subtract,
)
from pyrometer.trace.timing.step_windows import step_windows
from pyrometer.trace.trace import RankTrace


@analysis("breakdown")
def breakdown(trace: RankTrace) -> Breakdown:
    """Where the time went, in parts that sum to wall time; per step and per stream."""
    activity = trace.activity
    steps = step_windows(trace)
    low = np.append(steps["start_ns"].to_numpy(), activity.start_ns).astype(np.int64)
    high = np.append(steps["end_ns"].to_numpy(), activity.end_ns).astype(np.int64)
    parts = parts_of(activity, low, high)
    kernels = trace.of_kind(Kind.KERNEL)
    hidden = intersect(activity.communication, activity.hiding)
    return Breakdown(
        span_ns=activity.span_ns,
        start_ns=activity.start_ns,
        end_ns=activity.end_ns,
        parts=parts[-1],
        device_busy_ns=length(activity.device),
        kernel_busy_ns=_kernel_busy(activity),
        kernel_sum_ns=int(kernels["dur_ns"].sum()),
        num_kernels=kernels.height,
        num_orphans=trace.links.num_orphans,
        communication_ns=length(activity.communication),
        overlapped_communication_ns=length(hidden),
        by_step=[
            StepBreakdown(name=name, start_ns=start, end_ns=end, parts=part)
            for (name, start, end), part in zip(
                steps.select("name", "start_ns", "end_ns").iter_rows(), parts[:-1], strict=True
            )
        ],
        by_stream=_by_stream(trace),
    )


def parts_of(activity: Activity, low: IntArray, high: IntArray) -> list[Parts]:
    """The parts of any windows of time `[low, high)`, each summing to its length."""
    return _parts(_exclusive(_by_priority(activity)), low, high)


def _kernel_busy(activity: Activity) -> int:
    return length(merge(activity.compute, activity.communication)) if activity.has_device else 0


def _by_priority(activity: Activity) -> dict[str, Intervals]:
    return {
        "compute": activity.compute,
        "exposed_comm": subtract(activity.communication, activity.hiding),
        "exposed_memcpy": activity.memcpy,
        "memset": activity.memset,
        "sync": activity.sync,
        "data": activity.data,
        "runtime": activity.runtime,
        "host": activity.host,
        "other": activity.other,
    }


def _exclusive(layers: Mapping[str, Intervals]) -> dict[str, Intervals]:
    """Each layer without the points of those before it."""
    taken = EMPTY
    found = {}
    for name, layer in layers.items():
        found[name] = subtract(layer, taken)
        taken = merge(taken, layer)
    return found


def _parts(layers: Mapping[str, Intervals], low: IntArray, high: IntArray) -> list[Parts]:
    """The parts of each window `[low, high)`; what no layer covers is idle."""
    amounts = {name: covered(layer, low, high) for name, layer in layers.items()}
    amounts["idle"] = high - low - sum(amounts.values())
    rows = zip(*(amount.tolist() for amount in amounts.values()), strict=True)
    return [Parts(**dict(zip(amounts, row, strict=True))) for row in rows]


def _by_stream(trace: RankTrace) -> list[StreamBreakdown]:
    kernel = pl.col("kind") == Kind.KERNEL.value
    communicates = trace.mask(kernel & is_communication())
    work = trace.device_work.with_columns(
        pl.col("device").fill_null(-1),
        pl.col("stream").fill_null(-1),
        comm=pl.Series(communicates[trace.device_work["event"].to_numpy()]),
    )
    streams = work.select("device", "stream").unique().sort("device", "stream").with_row_index("lane")
    if not streams.height:
        return []
    lanes = Lanes(trace.activity.start_ns, trace.activity.end_ns)
    placed = work.select("device", "stream", "kind", "comm", "start_ns", "end_ns").join(
        streams, on=["device", "stream"], how="left"
    )
    layers = {
        name: _placed(placed.filter(mask), lanes)
        for name, mask in {
            "compute": kernel & ~pl.col("comm"),
            "exposed_comm": pl.col("comm"),
            "exposed_memcpy": pl.col("kind") == Kind.MEMCPY.value,
            "memset": pl.col("kind") == Kind.MEMSET.value,
        }.items()
    }
    lane = streams["lane"].to_numpy()
    low = lanes.place(lane, np.full(len(lane), lanes.low))
    parts = _parts(_exclusive(layers), low, low + lanes.high - lanes.low)
    keys = streams.select("device", "stream").iter_rows()
    return [
        StreamBreakdown(device=device, stream=stream, parts=part)
        for (device, stream), part in zip(keys, parts, strict=True)
    ]


def _placed(work: pl.DataFrame, lanes: Lanes) -> Intervals:
    return lanes.union(work["lane"].to_numpy(), work["start_ns"].to_numpy(), work["end_ns"].to_numpy())
