"""`TraceView`: what a page draws of one rank; columns are equally long, names and kinds are rows of their lists."""

from __future__ import annotations

from typing import Annotated

from pyrometer.record import Record, doc


class TrackView(Record, frozen=True, kw_only=True):
    """A thread or a stream; its slices lie on `num_rows` rows."""

    name: Annotated[str, doc("such as 'stream 7' or 'thread 4711 (autograd)'")]
    process: str
    is_device: bool
    num_rows: Annotated[int, doc("deepest nesting over all of its lanes, at least 1")]


class StepView(Record, frozen=True, kw_only=True):
    """A step on the host's clock."""

    name: str
    start_ns: Annotated[int, doc("since the origin")]
    end_ns: int


class SliceColumns(Record, frozen=True, kw_only=True):
    """Slices in order of track, row and start."""

    track: Annotated[list[int], doc("row of tracks")] = []
    row: Annotated[
        list[int], doc("within its track, counted from the top; a caller lies above its callees")
    ] = []
    start_ns: Annotated[
        list[int], doc("differences: the first since the origin, each other one since the slice before")
    ] = []
    dur_ns: list[int] = []
    name: Annotated[list[int], doc("row of names")] = []
    kind: Annotated[list[int], doc("row of kinds")] = []
    num_events: Annotated[
        list[int], doc("1, or how many short slices were merged into it; empty when all are 1")
    ] = []
    source: Annotated[
        list[int], doc("index of the slice that launched it; -1 when there is none, or it is not drawn")
    ] = []


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
    names: list[str]
    kinds: list[str]
    tracks: list[TrackView]
    steps: list[StepView] = []
    slices: SliceColumns
    calls: CallColumns
    num_slices: Annotated[int, doc("in the trace; more than are drawn when short ones were merged")]
    notice: Annotated[str | None, doc("what was merged to keep the page small; null when nothing was")] = None
