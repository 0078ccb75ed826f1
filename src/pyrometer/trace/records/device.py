"""What the devices of one rank do, and what they are given: kernels, launches, copies, collectives."""

from __future__ import annotations

from typing import Annotated

from pyrometer.place import Place
from pyrometer.quantity import Bytes
from pyrometer.record import Record, doc
from pyrometer.trace.records.breakdown import Distribution


class KernelTotal(Record, frozen=True, kw_only=True):
    """All launches of one kernel."""

    name: str
    short_name: Annotated[str, doc("without namespaces and parameters")]
    category: Annotated[str, doc("gemm, conv, attention, elementwise, …, other")]
    calls: int
    total_ns: int
    mean_ns: float
    min_ns: int
    max_ns: int
    share: Annotated[float, doc("of the sum over all kernels")]
    share_of_span: Annotated[float | None, doc("total over the span of the trace")] = None
    occupancy: Annotated[
        float | None, doc("estimated: threads resident over those that fit, 0…1, weighted with duration")
    ] = None
    waves: Annotated[float | None, doc("blocks over what the device holds at a time, weighted")] = None
    tail_share: Annotated[float | None, doc("block slots of all waves that stay empty, weighted")] = None
    tensor_cores: Annotated[
        bool | None, doc("by its name it runs on matrix units; null where a product's name does not say")
    ] = False
    source_ops: Annotated[list[str], doc("ATen operators that a generated kernel replaces")] = []
    kernel_file: Annotated[str | None, doc("generated source")] = None
    where: Annotated[Place, doc("of the longest launch")] = Place()


class CategoryTotal(Record, frozen=True, kw_only=True):
    """All kernels of one category."""

    category: str
    num_kernels: Annotated[int, doc("different names")]
    calls: int
    total_ns: int
    share: float


class GraphTotal(Record, frozen=True, kw_only=True):
    """The kernels that one captured graph launched."""

    graph: Annotated[int, doc("`graph id`; where the file has none −1, −2, … for each sequence of kernels")]
    launches: Annotated[int, doc("launching calls")]
    calls: Annotated[int, doc("kernels")]
    total_ns: int
    share: float


class KernelSummary(Record, frozen=True, kw_only=True):
    """All kernels of one rank."""

    calls: int
    num_kernels: Annotated[int, doc("different names")]
    total_ns: int
    share_of_span: float | None = None
    median_ns: Annotated[int | None, doc("duration of a launch; nearest rank")] = None
    occupancy: Annotated[float | None, doc("0…1, weighted with duration; over kernels that have one")] = None
    tail_share: Annotated[float | None, doc("weighted with duration; over kernels that have one")] = None
    tensor_core_ns: Annotated[int, doc("on matrix units, by name")] = 0
    unknown_core_ns: Annotated[int, doc("products whose names do not say on which units they run")] = 0
    unclassified_ns: Annotated[int, doc("kernels of category other")] = 0
    categories: list[CategoryTotal] = []
    graphs: list[GraphTotal] = []
    top: Annotated[list[KernelTotal], doc("by total time")] = []


class CallSite(Record, frozen=True, kw_only=True):
    """A place that issues many short pieces of work."""

    where: Place
    name: Annotated[str, doc("operator that is called most often there")]
    calls: int
    calls_per_step: float | None = None
    total_ns: Annotated[int, doc("device time of the short kernels, or the short operators' own time")]
    share: Annotated[float, doc("of all device or operator time")]


class Queue(Record, frozen=True, kw_only=True):
    """The queue of one stream."""

    device: int | None = None
    stream: int | None = None
    num_launched: Annotated[int, doc("pieces of work with a launch in the trace")]
    max_depth: Annotated[int, doc("most work waiting at a time")]
    mean_depth: Annotated[float, doc("over time")]
    observed_ns: Annotated[int, doc("first launch to last end")]
    empty_ns: Annotated[int, doc("time in which nothing waits; the stream may be running its last work")]
    full_ns: Annotated[int, doc("time with 1024 or more waiting, when a launch blocks")] = 0


class GraphLaunches(Record, frozen=True, kw_only=True):
    """Calls that launch several pieces of work."""

    num_launches: int
    num_work: int
    mean_work: Annotated[float, doc("pieces of work per launch")]
    num_explained: Annotated[
        int, doc("pieces of work whose operators are known from the capture of their graph")
    ] = 0


class Launches(Record, frozen=True, kw_only=True):
    """Launching on devices; see the module for what is counted."""

    num_work: Annotated[int, doc("kernels, copies and fills")]
    num_linked: Annotated[int, doc("of these with a launch in the trace")]
    after_call: Annotated[Distribution | None, doc("start of the work − end of its call")] = None
    after_start: Annotated[Distribution | None, doc("start of the work − start of its call")] = None
    num_long_delays: Annotated[int, doc("after_call above 100 µs")] = 0
    call_ns: Annotated[int, doc("host time in launching calls")] = 0
    call: Annotated[Distribution | None, doc("duration of launching calls")] = None
    kernel: Annotated[Distribution | None, doc("duration of kernels, communication left out")] = None
    num_short: Annotated[int, doc("of these kernels: below 10 µs")] = 0
    short_ns: Annotated[int, doc("their device time")] = 0
    num_shorter_than_launch: Annotated[int, doc("kernels that took less than their launching call")] = 0
    kernels_per_s: Annotated[float | None, doc("over the span of the trace")] = None
    launches_per_step: Annotated[float | None, doc("launching calls; mean over the steps")] = None
    device_span_ns: Annotated[int, doc("first device work to the last, added over devices")] = 0
    waiting_ns: Annotated[
        int, doc("of that: nothing runs on the device and nothing is queued; the host has not launched more")
    ] = 0
    waiting_share: float | None = None
    starting_ns: Annotated[
        int, doc("nothing runs, though work is queued: launch latency, or waiting for another stream")
    ] = 0
    queues: list[Queue] = []
    graphs: GraphLaunches | None = None
    sites: Annotated[list[CallSite], doc("where short kernels come from, most device work first")] = []


SHORTEST_NS = 10_000
"""What takes less is short, whatever the machine."""


class Dispatch(Record, frozen=True, kw_only=True):
    """Operators on the host: is it dispatch that takes the time?"""

    num_ops: Annotated[int, doc("operators that no other operator called")]
    num_nested: Annotated[int, doc("operators that another called")]
    ops_per_step: Annotated[float | None, doc("both together; mean over the steps")] = None
    op_ns: Annotated[int, doc("host time in operators, of all threads")]
    between_ns: Annotated[
        int, doc("between outermost operators of a thread that follow within 100 µs: Python and dispatch")
    ] = 0
    own: Annotated[Distribution | None, doc("an operator's own time, nested ones excluded")] = None
    dispatch_ns: Annotated[
        int | None,
        doc("median own time of operators that compute nothing, under the profiler; null with fewer than 20"),
    ] = None
    short_limit_ns: Annotated[
        int, doc("below this an operator counts as short: 5 times dispatch_ns, from 10 to 100 µs")
    ] = SHORTEST_NS
    num_short: Annotated[int, doc("outermost operators below short_limit_ns in all")] = 0
    short_ns: Annotated[int, doc("their time")] = 0
    short_share: Annotated[float | None, doc("of the host time in operators")] = None
    own_short_share: Annotated[
        float | None, doc("of the host time in operators: own times below short_limit_ns, of nested ones too")
    ] = None
    sites: Annotated[list[CallSite], doc("where short operators come from, most time first")] = []


class LaunchReport(Record, frozen=True, kw_only=True):
    """Launching on devices, and dispatching on the host."""

    num_steps: int
    device: Annotated[Launches | None, doc("absent without device work")] = None
    host: Dispatch


class CopyKind(Record, frozen=True, kw_only=True):
    """All copies of one direction and one kind of host memory, or all fills."""

    kind: Annotated[str, doc("H2D, D2H, D2D, P2P, H2H, memset, or other")]
    memory: Annotated[str | None, doc("of the host side: pinned, pageable, or host where it is not said")] = (
        None
    )
    num_copies: int
    total_bytes: Annotated[Bytes, doc("of those that name their size")]
    total_ns: Annotated[int, doc("sum of durations")]
    gb_per_s: Annotated[float | None, doc("bytes over time; null where no size is known")] = None
    busy_ns: Annotated[int, doc("any of them running")]
    overlapped_ns: Annotated[int, doc("of busy_ns, beside a compute kernel")]
    exposed_ns: Annotated[int, doc("of busy_ns, beside no kernel at all")]
    num_small: Annotated[int, doc("below 64 KiB")] = 0
    small_share: Annotated[float, doc("of the number of copies that name their size")] = 0.0


class CopyPlace(Record, frozen=True, kw_only=True):
    """Copies of one kind that were launched from one place."""

    kind: str
    memory: str | None = None
    num_copies: int
    total_bytes: Bytes
    total_ns: int
    where: Place


class Copies(Record, frozen=True, kw_only=True):
    """Copies and fills of one rank."""

    kinds: Annotated[list[CopyKind], doc("the longest total first")] = []
    places: Annotated[list[CopyPlace], doc("the longest total first, at most twenty")] = []
    num_copies: int = 0
    total_bytes: Bytes = 0
    total_ns: int = 0


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
