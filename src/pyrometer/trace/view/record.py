"""`TraceView`: what a page draws of one rank; columns are equally long, names and kinds are rows of their lists."""

from __future__ import annotations

from typing import Annotated

from pyrometer.record import Record, doc

COMMUNICATION = "communication"
"""Kind of kernels that move data between devices, drawn apart from those that compute."""

MODULE = "module"
"""Kind of calls of a module."""

SEVERAL = "several"
"""Kind of a slice that stands for short ones of different kinds."""


class TrackView(Record, frozen=True, kw_only=True):
    """A thread or a stream; its slices lie on `num_rows` rows."""

    name: Annotated[str, doc("such as 'stream 7' or 'thread 4711 (autograd)'")]
    process: Annotated[str, doc("such as 'python3' or 'device 0'")]
    is_device: bool
    num_rows: Annotated[int, doc("deepest nesting over all of its lanes, at least 1")]
    pid: Annotated[str, doc("process or device, as the file spells it")] = ""
    tid: Annotated[str, doc("thread or stream, as the file spells it")] = ""


class StepView(Record, frozen=True, kw_only=True):
    """A step on the host's clock."""

    name: str
    start_ns: Annotated[int, doc("since the origin")]
    end_ns: int


class LaneColumns(Record, frozen=True, kw_only=True):
    """Rows of tracks that hold slices, in order of track and row; their slices follow each other in `slices`."""

    track: Annotated[list[int], doc("row of tracks")] = []
    row: Annotated[
        list[int], doc("within its track, counted from the top; a caller lies above its callees")
    ] = []
    num_slices: list[int] = []


class LabelColumns(Record, frozen=True, kw_only=True):
    """What slices are called and are: pairs that occur, the most frequent first."""

    name: Annotated[list[int], doc("row of names")] = []
    kind: Annotated[list[int], doc("row of kinds")] = []


class SliceColumns(Record, frozen=True, kw_only=True):
    """Slices in order of lane and start; on one lane no two overlap."""

    gap_ns: Annotated[
        list[int],
        doc("since the end of the slice before on the same lane; the first of a lane since the origin"),
    ] = []
    dur_ns: list[int] = []
    label: Annotated[list[int], doc("row of labels")] = []


class MergedColumns(Record, frozen=True, kw_only=True):
    """Slices that stand for several short ones, in order."""

    slice: Annotated[list[int], doc("index of the slice: the first, then differences")] = []
    num_events: Annotated[list[int], doc("how many it stands for")] = []
    busy_ns: Annotated[list[int], doc("sum of their durations; the rest of its duration is gaps")] = []


class LaunchColumns(Record, frozen=True, kw_only=True):
    """Device work and the runtime calls that launched it, where both are drawn; in order of the work."""

    slice: Annotated[list[int], doc("index of the slice that was launched: the first, then differences")] = []
    source: Annotated[list[int], doc("index of the slice that launched it: the first, then differences")] = []


class CallColumns(Record, frozen=True, kw_only=True):
    """The call tree, merged by path; a parent comes before its children."""

    parent: Annotated[list[int], doc("index of the parent; -1 for the root")] = []
    name: Annotated[list[int], doc("row of names")] = []
    kind: Annotated[list[int], doc("row of kinds")] = []
    calls: list[int] = []
    total_ns: Annotated[list[int], doc("host time: its own plus that of its children")] = []
    self_ns: list[int] = []
    device_ns: Annotated[list[int], doc("device work launched at or below it")] = []
    device_self_ns: list[int] = []


class TraceView(Record, frozen=True, kw_only=True):
    """One rank, ready to be drawn. Times are nanoseconds since the origin, the start of the span."""

    rank: int
    path: str
    origin_ns: Annotated[int, doc("start of the span on the clock of the file")]
    span_ns: int
    names: Annotated[list[str], doc("the most frequent of slices first; very long ones are cut")]
    kinds: list[str]
    tracks: Annotated[list[TrackView], doc("in the order in which they are drawn")]
    steps: list[StepView] = []
    lanes: LaneColumns
    labels: LabelColumns
    slices: SliceColumns
    merged: MergedColumns = MergedColumns()
    launches: LaunchColumns = LaunchColumns()
    calls: CallColumns
    num_slices: Annotated[int, doc("in the trace; more than are drawn when short ones were merged")]
    num_passing: Annotated[int, doc("Python frames that only pass their call on, which are no slices")] = 0
    notice: Annotated[str | None, doc("what was merged to keep the page small; null when nothing was")] = None
