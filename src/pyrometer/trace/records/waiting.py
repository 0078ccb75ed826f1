"""Where devices stand idle, and where the host waits for them."""

from __future__ import annotations

from typing import Annotated, Literal

from pyrometer.place import Place
from pyrometer.record import Record, doc

HOST_KINDS = (
    "data_loading",
    "garbage_collection",
    "allocator",
    "sync",
    "runtime",
    "operator",
    "python",
    "annotation",
    "nothing",
)
"""What a thread can be doing, by the innermost event that is open: within the data loader; within Python's garbage
collector; in a call that allocates or frees device memory, waits for a device, or does anything else; in an operator
with no call below it; in Python with no operator below it; in an annotation with neither (that is what Python looks
like in a trace without stacks; steps do not count); or nothing was recorded."""


class HostActivity(Record, frozen=True, kw_only=True):
    """What the host did during idle time."""

    kind: Annotated[str, doc("; ".join(HOST_KINDS))]
    name: Annotated[str | None, doc("operator, function, call or annotation")] = None
    total_ns: Annotated[int, doc("how long, within the gap or gaps")] = 0


class IdleGap(Record, frozen=True, kw_only=True):
    """One gap."""

    start_ns: int
    dur_ns: int
    device: Annotated[int | None, doc("null without device work")]
    cause: Annotated[
        str,
        doc(
            "sync_drain, launch_starvation, between_collectives, turnaround, dependency, unknown; or no_operator"
        ),
    ]
    host: HostActivity
    where: Annotated[Place, doc("place of what the host did, else of the launch that ended the gap")]
    share: Annotated[float, doc("of all attributed idle time")]
    step: Annotated[int | None, doc("row of the steps in which the gap begins")] = None
    previous: Annotated[str | None, doc("device work before the gap")] = None
    previous_ns: Annotated[int | None, doc("how long that ran")] = None
    next: Annotated[str | None, doc("device work after the gap")] = None


class IdleGroup(Record, frozen=True, kw_only=True):
    """All gaps of one cause in which the host mostly did one kind of thing."""

    cause: str
    host: str
    num_gaps: int
    total_ns: int
    share: Annotated[float, doc("of all attributed idle time")]
    after_short_ns: Annotated[
        int, doc("of total_ns: in gaps up to 1 ms that follow a kernel below 10 µs")
    ] = 0
    doing: Annotated[list[HostActivity], doc("what it did the longest, at most three")] = []


class StreamIdle(Record, frozen=True, kw_only=True):
    """Gaps between consecutive work of one stream, by why the next work had not begun."""

    device: int
    stream: int
    num_gaps: int
    idle_ns: Annotated[int, doc("sum of the four that follow")]
    host_wait_ns: Annotated[int, doc("the next work was launched only after the work before it had ended")]
    kernel_wait_ns: Annotated[int, doc("launched in time, and at most 30 µs: the device's turn-around")]
    other_wait_ns: Annotated[int, doc("launched in time, and waited longer: for an event or another stream")]
    unknown_ns: Annotated[int, doc("the launch of the next work is not in the trace")]


class Idle(Record, frozen=True, kw_only=True):
    """Idle time of one rank; `idle_ns` is the sum of `attributed_ns` and of the three that are set apart."""

    of: Annotated[Literal["device", "host"], doc("host: in a trace without device work")]
    idle_ns: Annotated[int, doc("within the span, summed over devices")]
    attributed_ns: Annotated[int, doc("sum of all gaps")]
    leading_ns: Annotated[int, doc("before the first work of a device")] = 0
    trailing_ns: Annotated[int, doc("after the last work of a device")] = 0
    profiler_ns: Annotated[int, doc("gaps that the profiler itself caused")] = 0
    after_short_ns: Annotated[
        int,
        doc(
            "of attributed_ns: in gaps up to 1 ms that follow a kernel below 10 µs, which ended before more was launched"
        ),
    ] = 0
    num_gaps: int = 0
    gaps: Annotated[list[IdleGap], doc("the longest, the longest first")] = []
    num_other_gaps: Annotated[int, doc("gaps that are not listed")] = 0
    other_gaps_ns: int = 0
    groups: Annotated[
        list[IdleGroup], doc("all gaps by cause and by what the host did, the largest first")
    ] = []
    host_ns: Annotated[
        dict[str, int], doc("what the host did in all gaps, to the ns; sums to attributed_ns")
    ] = {}
    by_stream: list[StreamIdle] = []

    @property
    def between_collectives_ns(self) -> int:
        """Of attributed_ns: the host issues one collective after another."""
        return sum(group.total_ns for group in self.groups if group.cause == "between_collectives")


class SyncPoint(Record, frozen=True, kw_only=True):
    """All waits of one kind from one place."""

    name: Annotated[str, doc("operator that made the program wait, else the call itself")]
    calls: Annotated[list[str], doc("calls inside that waited; empty without device work")] = []
    scope: Annotated[str, doc("what was waited for: device, stream, event, copy, allocator; or none")]
    waited_for: Annotated[str | None, doc("device work that ended last within the longest of the waits")] = (
        None
    )
    thread: Annotated[str | None, doc("that waited")] = None
    num_calls: Annotated[int, doc("how often: once per operator, however many calls it makes")]
    total_ns: Annotated[int, doc("how long the host was in the calls")]
    max_ns: Annotated[int, doc("the longest time")]
    stalled_ns: Annotated[int, doc("of the total, while a device was at work")]
    device_idle_after_ns: Annotated[int, doc("idle time of devices that drained during one of the calls")] = 0
    where: Place


class StreamWait(Record, frozen=True, kw_only=True):
    """Waits of one stream for another, which hold up a device and not the host."""

    device: int
    stream: int
    waits_for_stream: int | None = None
    num_waits: int


class Synchronisation(Record, frozen=True, kw_only=True):
    """Where one rank's host waited for its devices."""

    points: Annotated[list[SyncPoint], doc("the longest stall first")] = []
    stream_waits: Annotated[list[StreamWait], doc("in traces with synchronisation records")] = []
    num_calls: int = 0
    total_ns: int = 0
    stalled_ns: int = 0
    device_idle_after_ns: int = 0
    num_profiler_calls: Annotated[int, doc("made by the profiler when it stopped, and left out")] = 0
    would_stall: Annotated[bool, doc("no device work: the points would wait if there were a device")] = False
